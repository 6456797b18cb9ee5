package script

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A transaction costs Redis a third of what the same commands cost it in a
// script, where each is converted twice and the interpreter's caches are cold.

// transaction wraps the commands in MULTI and EXEC, for one server.
func (c *Call) transaction(ctx context.Context) []once {
	cmds := make([]once, 0, 2+len(c.Commands))
	cmds = append(cmds, newOnce(ctx, 0, []any{"multi"}))
	cmds = append(cmds, c.plain(ctx)...)
	return append(cmds, newOnce(ctx, 0, []any{"exec"}))
}

// plain are the commands by themselves.
func (c *Call) plain(ctx context.Context) []once {
	cmds := make([]once, len(c.Commands))
	for i, words := range c.Commands {
		firstKey := 1
		if len(words) == 1 { // TIME
			firstKey = 0
		}
		cmds[i] = newOnce(ctx, int8(firstKey), words)
	}
	return cmds
}

// eachAlone sends each transaction by itself, as a cluster needs it, and
// returns the other calls.
func eachAlone(ctx context.Context, rdb redis.UniversalClient, calls []*Call, wg *sync.WaitGroup) (others []*Call) {
	for _, c := range calls {
		if c.Script != nil {
			others = append(others, c)
			continue
		}
		wg.Go(func() { c.runTransaction(ctx, rdb) })
	}
	return others
}

func (c *Call) runTransaction(ctx context.Context, rdb redis.UniversalClient) {
	pipe := rdb.TxPipeline()
	cmds := c.plain(ctx)
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, c.Err = pipe.Exec(ctx)
	c.Reply = make([]any, len(cmds))
	for i, cmd := range cmds {
		c.Reply[i] = cmd.Val()
	}
	if c.Err != nil && slices.ContainsFunc(cmds, func(cmd once) bool { return cmd.Err() == nil }) {
		c.Err = partial(failedInPart, c.Err)
	}
}

// check finds the error of a command that Redis ran in vain. The others of its
// transaction took effect, so it is not an error that proves that nothing did.
func (c *Call) check() {
	for _, reply := range c.Reply {
		if err, failed := reply.(error); failed {
			c.Err = partial(failedInPart, err)
			return
		}
	}
}

const failedInPart = "part of a transaction failed"

// partial hides that Redis gave the error: see [NotRun].
func partial(what string, err error) error { return errors.New(what + ": " + err.Error()) }
