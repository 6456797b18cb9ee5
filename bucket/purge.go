package bucket

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// PurgeBatch is the most events that one [Purge] forgets.
const PurgeBatch = 500

//go:embed purge.lua
var purgeSource string

var purgeScript = script.New(purgeSource)

// Places say which events [Purge] forgets.
type Places struct{ Scheduled, Ready, Dead bool }

// Purge forgets events of a lane that lie in these places, and returns how many.
// Less than [PurgeBatch] says that there was no other. Its errors are
// [ErrOutcomeUnknown], or why Redis refused.
func Purge(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, of Places) (n int, err error) {
	for try := 1; ; try++ {
		counts := l.Counts()
		keys := fixedKeys(l, counts.Buckets())
		if of.Scheduled {
			for i := range counts.Buckets() {
				keys = append(keys, l.Bucket(i))
			}
		}
		c := &script.Call{Script: purgeScript, Keys: keys, Args: []any{counts.Stored, PurgeBatch, flag(of.Dead), flag(of.Ready)}}
		_ = script.Run(ctx, rdb, c)
		if stored, stale := staleCounts(c); stale && try < maxTries {
			l.Learn(stored)
			continue
		}
		if err := callError(c, l, "purge"); err != nil {
			return 0, err
		}
		forgotten, _ := c.Reply[1].(int64)
		return int(forgotten), nil
	}
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}
