package dueq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/conserve"
	"github.com/dueq-io/dueq/internal/redistest"
)

// patience is how long a test waits for what must happen: on a machine with
// much else to do, too.
const patience = time.Minute

// holds is a lease that nothing but a dead process loses within a test, however
// loaded the machine is.
const holds = time.Minute

var errBroken = errors.New("broken")

// newQueue is a queue with a client of its own, in the test's namespace, shut
// down when the test ends.
func newQueue(t *testing.T, env *redistest.Env, opts dueq.Options) *dueq.Queue {
	t.Helper()
	return newQueueOn(t, env, env.NewClient(), opts)
}

// newQueueOn is newQueue with the given client.
func newQueueOn(t *testing.T, env *redistest.Env, rdb redis.UniversalClient, opts dueq.Options) *dueq.Queue {
	t.Helper()
	if opts.Namespace == "" {
		opts.Namespace = env.Namespace
	}
	if opts.Fallback == 0 {
		opts.Fallback = time.Hour // what a lost signal would delay does not come at all
	}
	q, err := dueq.New(rdb, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.ShutDown(ctx); err != nil && !errors.Is(err, dueq.ErrShutDown) && !t.Failed() {
			t.Errorf("ShutDown: %v", err)
		}
	})
	return q
}

func shutDown(t *testing.T, q *dueq.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.ShutDown(ctx); err != nil {
		t.Fatalf("ShutDown: %v", err)
	}
}

func publish(t *testing.T, q *dueq.Queue, topic, body string, due time.Time, opts ...dueq.PublishOption) (id string) {
	t.Helper()
	id, err := q.PublishEvent(t.Context(), topic, []byte(body), due, opts...)
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return id
}

func subscribe(t *testing.T, q *dueq.Queue, topic string, handlers ...dueq.Handler) {
	t.Helper()
	if err := q.Subscribe(topic, handlers...); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
}

func get(t *testing.T, q *dueq.Queue, topic, id string) *dueq.EventInfo {
	t.Helper()
	info, err := q.Get(t.Context(), topic, id)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return info
}

func stats(t *testing.T, q *dueq.Queue, topic string) dueq.Stats {
	t.Helper()
	s, err := q.Stats(t.Context(), topic)
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	return s
}

// receive takes one value that must come.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatal("the channel was closed")
		}
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	panic("unreachable")
}

var eventually = redistest.Eventually

// awaitState polls until the event lies where it should.
func awaitState(t *testing.T, q *dueq.Queue, topic, id string, want dueq.State) *dueq.EventInfo {
	t.Helper()
	var info *dueq.EventInfo
	eventually(t, "event "+string(want), func() bool {
		var err error
		info, err = q.Get(t.Context(), topic, id)
		return err == nil && info.State == want
	})
	return info
}

// awaitGone polls until there is no such event.
func awaitGone(t *testing.T, q *dueq.Queue, topic, id string) {
	t.Helper()
	eventually(t, "event gone", func() bool {
		_, err := q.Get(t.Context(), topic, id)
		return errors.Is(err, dueq.ErrNotFound)
	})
}

// awaitEmpty polls until a topic has no events, dead ones included.
func awaitEmpty(t *testing.T, q *dueq.Queue, topic string) {
	t.Helper()
	eventually(t, "topic "+topic+" empty", func() bool {
		s := stats(t, q, topic)
		return s.Scheduled+s.Ready+s.Leased+s.Dead == 0
	})
}

// stage is a handler that the test directs: each delivery is shown to the test,
// and returns what the test says. It ignores its ctx.
type stage struct {
	t    *testing.T
	acts chan *act
}

// act is one delivery to a stage.
type act struct {
	*dueq.Event
	ctx context.Context
	at  time.Time // when it began
	out chan func() error
}

func newStage(t *testing.T) *stage { return &stage{t: t, acts: make(chan *act, 10_000)} }

func (s *stage) HandleEvent(ctx context.Context, e *dueq.Event) error {
	a := &act{Event: e, ctx: ctx, at: time.Now(), out: make(chan func() error, 1)}
	s.acts <- a
	select {
	case f := <-a.out:
		return f()
	case <-s.t.Context().Done():
		return errors.New("the test is over")
	}
}

// next is the next delivery, which must come.
func (s *stage) next() *act {
	s.t.Helper()
	return receive(s.t, s.acts)
}

// none fails the test if a delivery has come.
func (s *stage) none() {
	s.t.Helper()
	select {
	case a := <-s.acts:
		s.t.Errorf("unexpected delivery: id %q, body %q, attempt %d", a.ID, a.Body, a.Attempt)
		a.end(nil)
	default:
	}
}

// end makes the handler return err.
func (a *act) end(err error) { a.out <- func() error { return err } }

// do makes the handler return f().
func (a *act) do(f func() error) { a.out <- f }

// want fails the test if the delivery is another.
func (a *act) want(t *testing.T, id, body string, attempt int) {
	t.Helper()
	if a.ID != id || string(a.Body) != body || a.Attempt != attempt {
		t.Errorf("delivered id %q, body %q, attempt %d; want %q, %q, %d", a.ID, a.Body, a.Attempt, id, body, attempt)
	}
}

// notBefore checks that the handler was not called before the event was due.
func (a *act) notBefore(t *testing.T, due time.Time) {
	t.Helper()
	if a.at.Before(due) {
		t.Errorf("ran %v early", due.Sub(a.at))
	}
}

// seen is a handler that notes what it is given and succeeds.
type seen chan *dueq.Event

func (s seen) HandleEvent(_ context.Context, e *dueq.Event) error {
	s <- e
	return nil
}

// hook is a redis.Hook that sees every command, alone or in a pipeline. Calls
// are those of scripts. A nil function passes them on.
type hook struct {
	// command stands before each single command.
	command func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error
	// pipeline stands before each pipeline.
	pipeline func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error
}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.command == nil {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error { return h.command(ctx, cmd, next) }
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.pipeline == nil {
		return next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error { return h.pipeline(ctx, cmds, next) }
}

// isMove reports whether a command runs a script or a transaction.
func isMove(cmd redis.Cmder) bool {
	return strings.HasPrefix(cmd.Name(), "eval") || cmd.Name() == "exec"
}

// conserved fails the test unless each of the topic's events lies in exactly one
// place. It may be called at any time.
func conserved(t *testing.T, env *redistest.Env, topic string) {
	t.Helper()
	tag := "{" + env.Namespace + ":" + topic
	_, bad, err := conserve.Breaches(context.Background(), env.Client, tag+"}:*", tag+"/*}:*")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(bad); n > 20 {
		bad = append(bad[:20], "…")
		t.Errorf("%d breaches", n)
	}
	for _, b := range bad {
		t.Errorf("conservation: %s", b)
	}
}
