// Package script runs atomic steps on Redis, Lua scripts and transactions: at
// most once, and many in one round trip.
package script

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed lib.lua
var lib string

// ErrOutcomeUnknown says that a call was sent and its reply never came: it may
// have taken effect, or not.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// Script is one Lua program.
type Script struct{ name, source, hash string }

// New returns the script made of the functions in lib.lua and of source, whose
// first line is a comment that begins with the script's name and a colon.
func New(source string) *Script {
	header, _, _ := strings.Cut(source, ":")
	source = lib + source
	sum := sha1.Sum([]byte(source))
	return &Script{name: strings.TrimPrefix(header, "-- "), source: source, hash: hex.EncodeToString(sum[:])}
}

// Call is one atomic step: a run of a script, or a transaction of plain
// commands. Keys and Args are sent as they are: strings, *string, []byte,
// integers and *int64.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any

	Commands [][]any // instead of a script: a transaction; a command's second word is a key of the lane
	Name     string  // of the transaction, for who measures it

	Replicas int // how many replicas must have what it writes; 0: the server alone

	Reply        []any // set by Run: the script's table, or the replies of the commands
	Err          error // set by Run
	Unreplicated error // set by Run if the step was done: nil, or why it is not known that Replicas have it
}

// commands are what goes over the wire.
func (c *Call) commands(ctx context.Context, byHash bool) []once {
	if c.Script == nil {
		return c.transaction(ctx)
	}
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
	return []once{newOnce(ctx, 3, args)}
}

// name is what the call is measured by.
func (c *Call) name() string {
	if c.Script != nil {
		return c.Script.name
	}
	return c.Name
}

// size is about how many words a call sends.
func (c *Call) size() int {
	n := len(c.Keys) + len(c.Args)
	for _, words := range c.Commands {
		n += len(words)
	}
	return n
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
	runWhere(ctx, rdb, calls)
}

// runWhere runs calls by themselves, wherever they can be confirmed.
func runWhere(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	if replicas(calls) > 0 && !Single(rdb) {
		runOnMasters(ctx, rdb, calls)
		return
	}
	runAll(ctx, rdb, calls)
}

func runAll(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	if !Single(rdb) {
		defer reloadAfter(ctx, rdb, calls)
		var wg sync.WaitGroup
		defer wg.Wait()
		calls = eachAlone(ctx, rdb, calls, &wg)
	}
	var missing []*Call
	for _, c := range runPipe(ctx, rdb, calls, true) {
		if redis.HasErrorPrefix(c.Err, "NOSCRIPT") {
			missing = append(missing, c)
		}
	}
	runPipe(ctx, rdb, missing, false)
}

func runPipe(ctx context.Context, rdb redis.UniversalClient, calls []*Call, byHash bool) []*Call {
	sent := make([][]once, len(calls))
	for i, c := range calls {
		sent[i] = c.commands(ctx, byHash)
	}
	most, patience := replicas(calls), replicaTime(rdb)
	var wait once
	if len(calls) == 1 && len(sent[0]) == 1 && most == 0 {
		_ = rdb.Process(ctx, sent[0][0])
	} else if len(calls) > 0 {
		pipe := rdb.Pipeline()
		for _, cmds := range sent {
			for _, cmd := range cmds {
				_ = pipe.Process(ctx, cmd)
			}
		}
		if most > 0 {
			wait = newWait(ctx, most, patience)
			_ = pipe.Process(ctx, wait)
		}
		_, _ = pipe.Exec(ctx) // each command carries its own error
	}
	for i, c := range calls {
		c.take(sent[i])
		c.confirm(wait, patience)
	}
	return calls
}

// take sets the call's outcome from its commands'.
func (c *Call) take(cmds []once) {
	c.Reply, c.Err = nil, nil
	for _, cmd := range cmds { // the first error is the cause: EXEC only says that there was one
		if c.Err = cmd.Err(); c.Err != nil {
			if c.Script != nil && cutShort(c.Err) {
				c.Err = partial("a script ended in its middle", c.Err)
			}
			return
		}
	}
	c.Reply, c.Err = cmds[len(cmds)-1].Slice()
	if c.Script == nil {
		c.check()
	}
}

// cutShort reports whether a script ended at a command that Redis refused, one
// that the user may not run for instance: what the script did before stays. Not
// if Redis takes no writes at all, for then it was the first one.
func cutShort(err error) bool {
	text := err.Error()
	if !strings.Contains(text, "@user_script") {
		return false
	}
	for _, noWrites := range []string{"OOM ", "READONLY ", "MISCONF ", "NOREPLICAS "} {
		if strings.HasPrefix(text, noWrites) || strings.Contains(text, "-"+noWrites) { // Redis 6.2 puts words before it
			return false
		}
	}
	return true
}

// NotRun reports whether err proves that a command did not change anything:
// Redis refused it, or it never left this process.
func NotRun(err error) bool {
	var refused redis.Error
	var op *net.OpError
	return errors.As(err, &refused) || errors.Is(err, errNotSent) ||
		errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.As(err, &op) && op.Op == "dial"
}
