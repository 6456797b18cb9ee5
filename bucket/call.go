package bucket

import (
	"fmt"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// maxTries is how often a call is made when each try teaches that other bucket
// counts were registered meanwhile.
const maxTries = 4

// fixedKeys are the KEYS that stand before the buckets in this package's scripts.
func fixedKeys(l *key.Lane, buckets int) []string {
	return append(make([]string, 0, 8+buckets),
		l.Pool, l.Ready, l.Bell, l.Meta, l.Stats, l.Attempts, l.Again, l.Dead)
}

// staleCounts reports whether the script found other bucket counts in Redis
// than this process believes in, and which.
func staleCounts(c *script.Call) (stored string, stale bool) {
	if c.Err != nil || c.Reply[0] != "counts" {
		return "", false
	}
	stored, stale = c.Reply[1].(string)
	return stored, stale
}

// noteReplicas sets the errors of those events that were stored on too few
// replicas.
func noteReplicas(c *script.Call, l *key.Lane, events []*Event) {
	if c.Unreplicated == nil {
		return
	}
	err := fmt.Errorf("bucket: publish in topic %q: %w: %w", l.Topic, ErrNotReplicated, c.Unreplicated)
	for _, e := range events {
		if e.Err == nil {
			e.Err = err
		}
	}
}

func callError(c *script.Call, l *key.Lane, verb string) error {
	switch {
	case c.Err == nil && c.Reply[0] == "counts":
		return fmt.Errorf("bucket: %s in topic %q: bucket counts change too fast (Redis has %v)", verb, l.Topic, c.Reply[1])
	case c.Err == nil:
		return nil
	case script.NotRun(c.Err):
		return fmt.Errorf("bucket: %s in topic %q: %w", verb, l.Topic, c.Err)
	default:
		return fmt.Errorf("bucket: %s in topic %q: %w: %w", verb, l.Topic, ErrOutcomeUnknown, c.Err)
	}
}
