// Package script runs Lua scripts on Redis: by hash, at most once, and many in
// one round trip.
package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

//go:embed lib.lua
var lib string

// Script is one Lua program.
type Script struct{ source, hash string }

// New returns the script made of the functions in lib.lua and of source.
func New(source string) *Script {
	source = lib + source
	sum := sha1.Sum([]byte(source))
	return &Script{source: source, hash: hex.EncodeToString(sum[:])}
}

// Call is one run of a script. Keys and Args are sent as they are: strings,
// *string, []byte and integers.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any

	Reply []any // set by Run
	Err   error // set by Run
}

// once is a command that the client must not send twice: a script that moved
// events must not run again because its reply was lost.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (c *Call) command(ctx context.Context, byHash bool) once {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	if byHash {
		args = append(args, "evalsha", c.Script.hash, len(c.Keys))
	} else {
		args = append(args, "eval", c.Script.source, len(c.Keys))
	}
	for _, k := range c.Keys {
		args = append(args, k)
	}
	args = append(args, c.Args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// Run runs one call and returns its error.
func Run(ctx context.Context, rdb redis.UniversalClient, c *Call) error {
	RunAll(ctx, rdb, []*Call{c})
	return c.Err
}

// RunAll runs many calls in one round trip (on a cluster, one per node). Each
// call carries its own reply and error.
func RunAll(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	if t, ok := rdb.(*together); ok {
		t.run(ctx, calls)
		return
	}
	runAll(ctx, rdb, calls)
}

func runOne(ctx context.Context, rdb redis.UniversalClient, c *Call) {
	cmd := c.command(ctx, true)
	err := rdb.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = c.command(ctx, false)
		_ = rdb.Process(ctx, cmd)
	}
	c.take(cmd)
}

func runAll(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	if len(calls) == 1 {
		runOne(ctx, rdb, calls[0])
		return
	}
	var missing []*Call
	for _, c := range runPipe(ctx, rdb, calls, true) {
		if redis.HasErrorPrefix(c.Err, "NOSCRIPT") {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		runPipe(ctx, rdb, missing, false)
	}
}

func runPipe(ctx context.Context, rdb redis.UniversalClient, calls []*Call, byHash bool) []*Call {
	pipe := rdb.Pipeline()
	cmds := make([]once, len(calls))
	for i, c := range calls {
		cmds[i] = c.command(ctx, byHash)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx) // each command carries its own error
	for i, c := range calls {
		c.take(cmds[i])
	}
	return calls
}

func (c *Call) take(cmd once) {
	c.Reply, c.Err = nil, cmd.Err()
	if c.Err == nil {
		c.Reply, c.Err = cmd.Slice()
	}
}

// NotRun reports whether err proves that a command did not change anything:
// Redis refused it, or it never left this process.
func NotRun(err error) bool {
	var refused redis.Error
	var op *net.OpError
	return errors.As(err, &refused) ||
		errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.As(err, &op) && op.Op == "dial"
}
