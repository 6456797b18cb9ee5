package counter

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
)

// Edited has a page rendered once it has not been edited for two seconds.
func Edited(ctx context.Context, queue *dueq.Queue, page string, text []byte) error {
	_, err := queue.PublishEvent(ctx, "render", text, time.Now().Add(2*time.Second),
		dueq.WithID(page), dueq.WithKeyPolicy(dueq.KeyReplace))
	return err
}
