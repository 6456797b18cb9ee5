package script_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/internal/script"
)

func transaction(commands ...[]any) *script.Call { return &script.Call{Commands: commands} }

// Transactions and scripts share a round trip, each with its own replies.
func TestTransaction(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		hash, set := "{"+env.Namespace+"}h", "{"+env.Namespace+"}z"
		id, due := "id", int64(17)
		store := transaction(
			[]any{"time"},
			[]any{"hset", hash, &id, "body"},
			[]any{"zadd", set, &due, &id},
			[]any{"zrange", set, 0, 0},
		)
		count := &script.Call{Script: script.New("return { redis.call('HLEN', KEYS[1]) }"), Keys: []string{hash}}
		script.RunAll(t.Context(), env.Client, []*script.Call{store, count})
		if store.Err != nil || count.Err != nil || count.Reply[0] != int64(1) {
			t.Fatalf("transaction: %v, script: %v, %v", store.Err, count.Reply, count.Err)
		}
		head, _ := store.Reply[3].([]any)
		if len(store.Reply) != 4 || store.Reply[1] != int64(1) || store.Reply[2] != int64(1) || !slices.Equal(head, []any{"id"}) {
			t.Errorf("replies %v", store.Reply)
		}
		if at := env.Client.ZScore(t.Context(), set, id).Val(); at != 17 {
			t.Errorf("score %v", at)
		}
	})
}

// A command that Redis does not accept keeps the others from being run, and its
// error is the call's.
func TestTransactionRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		k := env.Namespace
		c := transaction([]any{"set", k, "x"}, []any{"zadd", k + "2"})
		script.RunAll(t.Context(), env.Client, []*script.Call{c})
		if !strings.Contains(fmt.Sprint(c.Err), "wrong number") || !script.NotRun(c.Err) || c.Reply != nil {
			t.Errorf("reply %v, %v", c.Reply, c.Err)
		}
		if n := env.Client.Exists(t.Context(), k).Val(); n != 0 {
			t.Error("the other command was run")
		}

		c = transaction([]any{"set", k, "x"}, []any{"zrange", k, 0, 0})
		script.RunAll(t.Context(), env.Client, []*script.Call{c})
		if !strings.Contains(fmt.Sprint(c.Err), "WRONGTYPE") || script.NotRun(c.Err) { // the other did run
			t.Errorf("reply %v, %v", c.Reply, c.Err)
		}
	})
}

// On a cluster each transaction goes to its node by itself.
func TestTransactionOnCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t, 3).Client()
	var calls []*script.Call
	for _, tag := range []string{"{a}", "{b}", "{c}", "{d}"} {
		calls = append(calls, transaction([]any{"time"}, []any{"set", tag, tag}, []any{"get", tag}))
	}
	script.RunAll(t.Context(), rdb, calls)
	for i, c := range calls {
		if tag := string([]byte{'{', byte('a' + i), '}'}); c.Err != nil || c.Reply[2] != tag {
			t.Errorf("%s: %v, %v", tag, c.Reply, c.Err)
		}
	}
	c := transaction([]any{"set", "{a}", "x"}, []any{"zrange", "{a}", 0, 0})
	script.RunAll(t.Context(), rdb, []*script.Call{c})
	if !strings.Contains(fmt.Sprint(c.Err), "WRONGTYPE") || script.NotRun(c.Err) {
		t.Errorf("a command in vain: %v, %v", c.Reply, c.Err)
	}
}
