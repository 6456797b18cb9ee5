package readyqueue

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed pause.lua
var pauseSource string

var pauseScript = script.New(pauseSource)

// Pause makes every [Claim] in the lanes find nothing, until they are paused no
// more; what is due goes to ready as ever.
func Pause(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane, paused bool) error {
	calls := make([]*script.Call, len(lanes))
	for i, l := range lanes {
		calls[i] = &script.Call{
			Script: pauseScript, Keys: []string{l.Meta, l.Ready, l.Bell}, Args: []any{flag(paused), l.Alarm},
		}
	}
	script.RunAll(ctx, rdb, calls)
	for i, c := range calls {
		if c.Err != nil {
			verb := "resume"
			if paused {
				verb = "pause"
			}
			return fmt.Errorf("readyqueue: %s topic %q: %w", verb, lanes[i].Topic, c.Err)
		}
	}
	return nil
}
