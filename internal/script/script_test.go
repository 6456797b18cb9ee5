package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/internal/script"
)

// eval runs a piece of Lua that returns a table.
func eval(t *testing.T, env *redistest.Env, source string, keys []string, args ...any) []any {
	t.Helper()
	c := &script.Call{Script: script.New(source), Keys: keys, Args: args}
	if err := script.Run(t.Context(), env.Client, c); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return c.Reply
}

func TestRun(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		text := "pointer"
		for range 2 { // once with the source, once by its hash
			got := eval(t, env, "return { KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4] + 1, #ARGV }",
				[]string{env.Namespace + "a", env.Namespace + "b"}, "string", &text, []byte("bytes\x00\r\n"), int64(1)<<40)
			want := []any{env.Namespace + "b", "string", "pointer", "bytes\x00\r\n", int64(1)<<40 + 1, int64(4)}
			if !slices.Equal(got, want) {
				t.Errorf("reply %q, want %q", got, want)
			}
		}
		c := &script.Call{Script: script.New("return redis.error_reply('MINE said no')"), Keys: []string{env.Namespace}}
		if err := script.Run(t.Context(), env.Client, c); !redis.HasErrorPrefix(err, "MINE") || !errors.Is(err, c.Err) || !script.NotRun(err) {
			t.Errorf("error %v", err)
		}
	})
}

// Each call of a round trip has its own reply and its own error, whether Redis
// knew its script or not.
func TestRunAll(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		calls := make([]*script.Call, 20)
		for round := range 3 {
			for i := range calls {
				source := fmt.Sprintf("if ARGV[1] == '3' then return redis.error_reply('MINE') end return { ARGV[1], '%s %d' }", env.Namespace, i%5*round)
				calls[i] = &script.Call{Script: script.New(source), Keys: []string{env.Namespace}, Args: []any{i}}
			}
			script.RunAll(t.Context(), env.Client, calls)
			for i, c := range calls {
				if i == 3 {
					if !redis.HasErrorPrefix(c.Err, "MINE") || c.Reply != nil {
						t.Errorf("call 3: %v, %v", c.Reply, c.Err)
					}
				} else if c.Err != nil || c.Reply[0] != fmt.Sprint(i) {
					t.Errorf("call %d: %v, %v", i, c.Reply, c.Err)
				}
			}
		}
		script.RunAll(t.Context(), env.Client, nil)
	})
}

// lossy is a connection that loses replies once told to.
type lossy struct {
	net.Conn
	losing *atomic.Bool
}

func (c *lossy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.losing.Load() && bytes.Contains(p[:n], []byte("ran")) {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	return n, err
}

// A script whose reply was lost is not sent again: it may have run.
func TestNeverSentTwice(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		var losing atomic.Bool
		rdb := redis.NewClient(&redis.Options{
			Addr: env.Addr, MaxRetries: 5, PoolSize: 1,
			Dialer: func(_ context.Context, network, addr string) (net.Conn, error) {
				conn, err := net.Dial(network, addr)
				return &lossy{conn, &losing}, err
			},
		})
		defer func() { _ = rdb.Close() }()
		count := script.New("redis.call('INCR', KEYS[1]) return { 'ran' }")
		for name, run := range map[string]func(...*script.Call){
			"one":  func(calls ...*script.Call) { _ = script.Run(t.Context(), rdb, calls[0]) },
			"many": func(calls ...*script.Call) { script.RunAll(t.Context(), rdb, calls) },
			"together": func(calls ...*script.Call) {
				script.RunAll(t.Context(), script.Together(rdb, new(metric.Calls)), calls)
			},
		} {
			call := func(k string) *script.Call {
				return &script.Call{Script: count, Keys: []string{env.Namespace + name + k}}
			}
			losing.Store(false)
			run(call("loaded"))
			losing.Store(true)
			first, second := call("first"), call("second")
			run(first, second)
			if first.Err == nil || script.NotRun(first.Err) {
				t.Errorf("%s: error %v", name, first.Err)
			}
			if n := env.Client.Get(t.Context(), first.Keys[0]).Val(); n != "1" {
				t.Errorf("%s: the first call ran %q times, want 1", name, n)
			}
			if n := env.Client.Get(t.Context(), second.Keys[0]).Val(); n > "1" { // the server may have seen the connection end before
				t.Errorf("%s: the second call ran %q times, want 1 at most", name, n)
			}
		}
	})
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// A script that ends in its middle is no proof that nothing changed; one whose
// first write Redis refuses is.
func TestScriptCutShort(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	source := "redis.call('SET', KEYS[1], 'written') return { redis.call('INCR', KEYS[1]) }"
	run := func(key string) error {
		return script.Run(t.Context(), rdb, &script.Call{Script: script.New(source), Keys: []string{key}})
	}
	if err := run("a"); err == nil || script.NotRun(err) || rdb.Get(t.Context(), "a").Val() != "written" {
		t.Errorf("a script that failed at its second command: %v, NotRun %t", err, script.NotRun(err))
	}
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := run("b"); err == nil || !script.NotRun(err) || rdb.Exists(t.Context(), "b").Val() != 0 {
		t.Errorf("a script on a full Redis: %v, NotRun %t", err, script.NotRun(err))
	}
}

func TestNotRun(t *testing.T) {
	t.Parallel()
	for want, errs := range map[bool][]error{
		true: {
			refusal("OOM"), fmt.Errorf("x: %w", refusal("OOM")), redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
			&net.OpError{Op: "dial", Err: errors.New("refused")},
		},
		false: {
			nil, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("x"),
			&net.OpError{Op: "read", Err: errors.New("reset")}, &net.OpError{Op: "write", Err: errors.New("reset")},
		},
	} {
		for _, err := range errs {
			if got := script.NotRun(err); got != want {
				t.Errorf("NotRun(%v) = %t", err, got)
			}
		}
	}
}

// trips counts the round trips of a client that never dials: each waits to be
// let through.
type trips struct {
	begun   chan int // number of commands
	proceed chan struct{}
}

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { return h.serve(cmd) }
}

func (h *trips) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error { return h.serve(cmds...) }
}

func (h *trips) serve(cmds ...redis.Cmder) error {
	h.begun <- len(cmds)
	<-h.proceed
	for _, cmd := range cmds {
		cmd.(interface{ SetVal(any) }).SetVal([]any{cmd.Args()[len(cmd.Args())-1]})
	}
	return nil
}

func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &trips{begun: make(chan int, 100), proceed: make(chan struct{})}
		client := redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}) // never dialled
		defer func() { _ = client.Close() }()
		client.AddHook(h)
		rdb := script.Together(client, new(metric.Calls))
		s := script.New("return { ARGV[1] }")
		var wg sync.WaitGroup
		call := func(i int) {
			wg.Go(func() {
				c := &script.Call{Script: s, Keys: []string{"k"}, Args: []any{i}}
				if err := script.Run(t.Context(), rdb, c); err != nil || c.Reply[0] != i {
					t.Errorf("call %d: %v, %v", i, c.Reply, err)
				}
			})
		}
		call(0)
		synctest.Wait()
		for i := range 30 {
			call(i + 1)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c := &script.Call{Script: s, Args: []any{"never sent"}}
		if err := script.Run(ended, rdb, c); !errors.Is(err, context.Canceled) {
			t.Errorf("call with an ended ctx = %v", err)
		}
		synctest.Wait()
		close(h.proceed)
		wg.Wait()
		if first, second := <-h.begun, <-h.begun; first != 1 || second != 30 || len(h.begun) > 0 {
			t.Errorf("round trips of %d, %d and %d others", first, second, len(h.begun))
		}
	})
}

func TestSingle(t *testing.T) {
	t.Parallel()
	one := redis.NewClient(&redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:1"}})
	t.Cleanup(func() {
		_ = one.Close()
		_ = cluster.Close()
	})
	for client, single := range map[redis.UniversalClient]bool{one: true, cluster: false} {
		together := script.Together(client, new(metric.Calls))
		if script.Single(client) != single || script.Single(together) != single || script.Client(together) != client {
			t.Errorf("a %T is taken for another", client)
		}
	}
}

// The functions of lib.lua.
func TestLib(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for source, want := range map[string][]any{
			"text(1732184357123)":                             {"1732184357123"},
			"text(1732184357123456)":                          {"1732184357123456"},
			"text(0)":                                         {"0"},
			"attempts_of('17||x')":                            {int64(17)},
			"attempts_of(false)":                              {int64(0)},
			"undone('3|ff|a|b')":                              {"3||a|b"},
			"undone('3||a')":                                  {"3||a"},
			"undone('3|1|1|ff|')":                             {"3||1|ff|"},
			"parse_mark('keep:17:3')":                         {"keep", "17", "3"},
			"parse_mark('replace:-1:0')":                      {"replace", "-1", "0"},
			`retime('{"v":1,"at":5}\n{"v":1,"at":6}', '17')`:  {"{\"v\":1,\"at\":17}\n{\"v\":1,\"at\":6}"},
			`retime('{"v":1,"at":-5,"max":3}\n', '170')`:      {"{\"v\":1,\"at\":170,\"max\":3}\n"},
			`retime('not a record {"v":1,"at":5}', '17')`:     {"not a record {\"v\":1,\"at\":5}"},
			`retime('{"v":1,"at":5}\n%1 \\0', '17')`:          {"{\"v\":1,\"at\":17}\n%1 \\0"},
			"clock() > 1.7e12 and clock() < 1e13 and 1 or 0":  {int64(1)},
			"select(2, clock()) > 1.7e15 and 'micro' or 'no'": {"micro"},
		} {
			if got := eval(t, env, "return { "+source+" }", []string{env.Namespace}); !slices.Equal(got, want) {
				t.Errorf("%s is %q, want %q", source, got, want)
			}
		}
	})
}
