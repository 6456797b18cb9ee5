package readyqueue

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// Retention says which dead events a lane keeps.
type Retention struct {
	Age   time.Duration // how long, by the server's clock
	Limit int           // most of them
}

// Trimmed is how many dead events a lane has forgotten.
type Trimmed struct {
	Old    int // that died too long ago
	Excess int // that were too many
}

//go:embed trim.lua
var trimSource string

var trimScript = script.New(trimSource)

// Trim forgets at most [MaxBatch] dead events of a lane that are not to be kept,
// the oldest first. After as many there may be more.
func Trim(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, r Retention) (Trimmed, error) {
	c := &script.Call{
		Script: trimScript,
		Keys:   []string{l.Dead, l.Pool, l.Attempts, l.Stats},
		Args:   []any{r.Age.Milliseconds(), r.Limit, MaxBatch},
	}
	if err := script.Run(ctx, rdb, c); err != nil {
		return Trimmed{}, fmt.Errorf("readyqueue: trim the dead of topic %q: %w", l.Topic, err)
	}
	old, _ := c.Reply[0].(int64)
	excess, _ := c.Reply[1].(int64)
	return Trimmed{Old: int(old), Excess: int(excess)}, nil
}
