package dueq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// faultLane are the keys of topic a, with one partition and 16 buckets.
func faultLane(namespace string) *key.Lane { return key.NewLane(namespace, "a", 0, 1, 16) }

// faultEmpty waits until topic a holds nothing.
func faultEmpty(t *testing.T, env *redistest.Env) {
	t.Helper()
	eventually(t, "the topic is empty", func() bool {
		return env.Client.HLen(t.Context(), faultLane(env.Namespace).Pool).Val() == 0
	})
	conserved(t, env, "a")
}

// faultTime is the server's clock.
func faultTime(t *testing.T, rdb redis.UniversalClient) time.Time {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// errFault is what a hook returns instead of the server's reply.
var errFault = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by the test")}

// faultHook stands between one client and its server.
type faultHook struct {
	mu    sync.Mutex
	lose  map[string]int    // by move: how many replies are still to be lost
	holds map[string]*hold  // by move, or "": all commands wait here
	cut   bool              // no command reaches the server
	sent  map[string]int    // by move: how many commands were sent
	seen  map[string]int    // by move: how many commands came through
	after map[string]func() // by move: called once its command has run
}

type hold struct {
	open    chan struct{}
	reached chan struct{} // closed when a command waits
	once    sync.Once
}

// faultHooked adds a hook to a client.
func faultHooked(rdb redis.UniversalClient) *faultHook {
	h := &faultHook{
		lose: make(map[string]int), holds: make(map[string]*hold),
		sent: make(map[string]int), seen: make(map[string]int), after: make(map[string]func()),
	}
	rdb.AddHook(h)
	return h
}

// loseReplies lets the next n commands of a move run, and then fails them.
func (h *faultHook) loseReplies(move string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose[move] = n
}

// then calls f after each command of a move, before its reply comes.
func (h *faultHook) then(move string, f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.after[move] = f
}

// disconnect fails all commands, unsent, until connect.
func (h *faultHook) disconnect() { h.setCut(true) }
func (h *faultHook) connect()    { h.setCut(false) }

func (h *faultHook) setCut(cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut = cut
}

// hold makes the commands of a move ("": all) wait, unsent, until release is
// called; reached is closed when one does.
func (h *faultHook) hold(move string) (reached <-chan struct{}, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &hold{open: make(chan struct{}), reached: make(chan struct{})}
	h.holds[move] = g
	return g.reached, sync.OnceFunc(func() {
		h.mu.Lock()
		delete(h.holds, move)
		h.mu.Unlock()
		close(g.open)
	})
}

// count is how many commands of a move came through.
func (h *faultHook) count(move string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[move]
}

// listens is how many waits for bells have begun.
func (h *faultHook) listens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent["listen"]
}

// faultMove tells which of the moves a command runs, or else its name; "listen"
// is a BLPOP that waits for a bell.
func faultMove(cmd redis.Cmder) string {
	args := cmd.Args()
	if cmd.Name() == "blpop" && len(args) > 3 {
		return "listen"
	}
	if cmd.Name() == "exec" {
		return "publish" // the only move that is a transaction
	}
	if name := cmd.Name(); name != "evalsha" && name != "eval" || len(args) < 5 {
		return name
	}
	keys := args[3 : 3+args[2].(int)]
	switch first := keys[0].(string); {
	case strings.HasSuffix(first, ":ready"):
		return "claim"
	case strings.Contains(first, ":held:"):
		return "settle"
	case strings.HasSuffix(first, ":sessions") && len(keys) == 2:
		return "extend"
	case strings.HasSuffix(first, ":sessions"):
		return "expire"
	case strings.HasSuffix(first, ":pool") && len(keys) > 8:
		return "publish"
	}
	return "script"
}

// before waits or fails as the hook is set.
func (h *faultHook) before(cmd redis.Cmder) error {
	move := faultMove(cmd)
	h.mu.Lock()
	cut := h.cut
	holds := []*hold{h.holds[""], h.holds[move]}
	h.mu.Unlock()
	if cut {
		return errFault
	}
	for _, g := range holds {
		if g != nil {
			g.once.Do(func() { close(g.reached) })
			<-g.open
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[move]++
	return nil
}

// lost takes note of a command that has run, and reports whether its reply is
// to be lost.
func (h *faultHook) lost(cmd redis.Cmder, err error) bool {
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return false
	}
	move := faultMove(cmd)
	h.mu.Lock()
	h.seen[move]++
	lost := h.lose[move] > 0
	if lost {
		h.lose[move]--
	}
	after := h.after[move]
	h.mu.Unlock()
	if after != nil {
		after()
	}
	return lost
}

func (h *faultHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *faultHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.before(cmd); err != nil {
			return err
		}
		err := next(ctx, cmd)
		if h.lost(cmd, err) {
			return errFault
		}
		return err
	}
}

func (h *faultHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if h.before(cmd) == nil {
				continue
			}
			for _, cmd := range cmds {
				cmd.SetErr(errFault)
			}
			return errFault
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if h.lost(cmd, cmd.Err()) {
				cmd.SetErr(errFault)
				err = errFault
			}
		}
		return err
	}
}

// faultConfig is what a worker process is to do.
type faultConfig struct {
	Addr, Namespace, Topic, Name string

	Lease, Fallback, Pause time.Duration // Pause: handlers take up to so long
	Timeout                time.Duration // Options.ShutdownTimeout
	Concurrency            int
	MaxAttempts            int
}

// faultEnv is the variable that holds a worker process's faultConfig.
const faultEnv = "DUEQ_FAULT_WORKER"

// faultWorker is a process that handles events.
type faultWorker struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, once it has
}

// faultStart starts this test binary again, to run TestFaultWorker. The process
// ends with the test, or with this process.
func faultStart(t *testing.T, c faultConfig) *faultWorker {
	t.Helper()
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &faultWorker{name: c.Name, done: make(chan struct{})}
	w.cmd = exec.Command(os.Args[0], "-test.run=^TestFaultWorker$")
	w.cmd.Env = append(os.Environ(), faultEnv+"="+string(config))
	w.cmd.Stdout, w.cmd.Stderr = t.Output(), t.Output()
	if _, err := w.cmd.StdinPipe(); err != nil { // closed when this process ends
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.done)
		w.err = w.cmd.Wait()
	}()
	t.Cleanup(func() { w.kill() })
	return w
}

// kill ends the process as a crash of its machine would.
func (w *faultWorker) kill() {
	w.signal(syscall.SIGKILL)
	<-w.done
}

// wait returns how the process has ended, once it has.
func (w *faultWorker) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		t.Fatalf("worker %s does not end", w.name)
	}
	return w.err
}

// signal sends a signal to the process, if it has not ended.
func (w *faultWorker) signal(s syscall.Signal) { _ = w.cmd.Process.Signal(s) }

// faultRun is one call of a handler in a worker process.
type faultRun struct {
	ID, Worker string
	Attempt    int
	Early      time.Duration // before the event's time, by the server's clock; 0: not early
}

// Keys by which worker processes talk to their test.
func (c faultConfig) runs() string  { return c.Namespace + ":test:runs" }
func (c faultConfig) up() string    { return c.Namespace + ":test:up" }
func (c faultConfig) stops() string { return c.Namespace + ":test:stops" }
func (c faultConfig) free() string  { return c.Namespace + ":test:free:" + c.Name }

// faultRuns reads what the worker processes' handlers have reported.
func (c faultConfig) faultRuns(t *testing.T, rdb redis.UniversalClient) []faultRun {
	t.Helper()
	lines, err := rdb.LRange(t.Context(), c.runs(), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	runs := make([]faultRun, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &runs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return runs
}

// TestFaultWorker is what a worker process runs; in the test run itself it does
// nothing.
func TestFaultWorker(t *testing.T) {
	config := os.Getenv(faultEnv)
	if config == "" {
		return
	}
	var c faultConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the test that started it is gone
	}()
	rdb := redis.NewClient(&redis.Options{Addr: c.Addr})
	q, err := dueq.New(rdb, dueq.Options{
		Namespace: c.Namespace, Lease: c.Lease, Fallback: c.Fallback, Concurrency: c.Concurrency,
		MaxAttempts: c.MaxAttempts, ShutdownTimeout: c.Timeout,
		Backoff: func(int, error) time.Duration { return 10 * time.Millisecond },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Subscribe(c.Topic, dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		return c.handle(ctx, rdb, e)
	})); err != nil {
		t.Fatal(err)
	}
	rdb.RPush(t.Context(), c.up(), c.Name)
	if err := q.Run(t.Context()); err != nil {
		t.Error(err)
	}
	os.Exit(map[bool]int{true: 1}[t.Failed()]) // not waiting for stdin to end
}

// handle does what the event's body says, after reporting the call.
func (c faultConfig) handle(ctx context.Context, rdb *redis.Client, e *dueq.Event) error {
	now, err := rdb.Time(context.WithoutCancel(ctx)).Result()
	if err != nil {
		return err
	}
	run := faultRun{ID: e.ID, Worker: c.Name, Attempt: e.Attempt}
	if now.Before(e.EffectTime) {
		run.Early = e.EffectTime.Sub(now)
	}
	line, err := json.Marshal(run)
	if err != nil {
		return err
	}
	if err := rdb.RPush(context.WithoutCancel(ctx), c.runs(), line).Err(); err != nil {
		return err
	}
	switch what := string(e.Body); what {
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "exit":
		os.Exit(7)
	case "stop": // until the test lets it go; reports why its ctx ended meanwhile
		stop := context.AfterFunc(ctx, func() {
			rdb.RPush(context.WithoutCancel(ctx), c.stops(), e.ID+" "+context.Cause(ctx).Error())
		})
		defer stop()
		return rdb.BLPop(context.WithoutCancel(ctx), 0, c.free()).Err()
	case "end": // with its ctx
		<-ctx.Done()
		return ctx.Err()
	default:
		if c.Pause > 0 {
			<-time.After(rand.N(c.Pause))
		}
		if n, err := strconv.Atoi(what); err == nil && e.Attempt <= n {
			return fmt.Errorf("attempt %d fails", e.Attempt)
		}
	}
	return nil
}
