package script

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// once is a command that the client must not send twice: a script that moved
// events must not run again because its reply was lost.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, firstKey int8, args []any) once {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	return once{cmd}
}

// Once sends the command that build makes, and does not send it again. It is for
// callers that try again themselves: the client's own attempts would keep them
// from hearing that the connection broke, and on a server that hangs each takes
// seconds.
func Once[C redis.Cmder](ctx context.Context, rdb redis.UniversalClient, build func(redis.Pipeliner) C) C {
	cmd := build(rdb.Pipeline()) // which keeps it, and is never sent
	_ = rdb.Process(ctx, single{cmd})
	return cmd
}

type single struct{ redis.Cmder }

func (single) NoRetry() bool { return true }
