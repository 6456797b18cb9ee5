package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestEachHandlerMustSucceed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: noPause})
		a, b, c := newStage(t), newStage(t), newStage(t)
		subscribe(t, q, topic, a, b, c)
		id := publish(t, q, topic, "x", past())
		first := a.next()
		first.want(t, id, "x", 1)
		first.end(nil)
		second := b.next() // though an earlier one may fail, the later ones run
		second.want(t, id, "x", 1)
		second.end(errBroken)
		c.next().end(nil)

		second = b.next()
		second.want(t, id, "x", 2)
		second.end(nil)
		awaitGone(t, q, topic, id)
		a.none()
		b.none()
		c.none()
		conserved(t, env, topic)
	})
}

// What has succeeded is known to whichever process runs the retry.
func TestRetryInAnotherProcess(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first := newQueue(t, env, dueq.Options{Backoff: never})
		a, b, c := newStage(t), newStage(t), newStage(t)
		subscribe(t, first, topic, a, b, c)
		id := publish(t, first, topic, "x", past())
		a.next().end(errors.New("a is broken"))
		b.next().end(nil)
		c.next().end(errors.New("c is broken"))
		info := awaitState(t, first, topic, id, dueq.StateScheduled)
		if !strings.Contains(info.LastError, "a is broken") || !strings.Contains(info.LastError, "c is broken") {
			t.Errorf("last error %q", info.LastError)
		}
		shutDown(t, first)

		second := newQueue(t, env, dueq.Options{Backoff: never})
		subscribe(t, second, topic, a, b, c)
		reschedule(t, second, id, past())
		a.next().end(nil)
		retry := c.next()
		retry.want(t, id, "x", 2)
		retry.do(func() error { panic("c is in panic") })
		awaitState(t, second, topic, id, dueq.StateScheduled)
		shutDown(t, second)

		third := newQueue(t, env, dueq.Options{})
		subscribe(t, third, topic, a, b, c)
		reschedule(t, third, id, past())
		c.next().end(nil)
		awaitGone(t, third, topic, id)
		a.none()
		b.none()
		c.none()
		conserved(t, env, topic)
	})
}

// A handler that was given back unhandled by ShutDown does not make the others
// run again.
func TestShutDownBetweenHandlers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first := newQueue(t, env, dueq.Options{})
		a, b := newStage(t), newStage(t)
		subscribe(t, first, topic, a, b)
		id := publish(t, first, topic, "x", past())
		a.next().end(nil)
		cut := b.next()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ended := make(chan error, 1)
		go func() { ended <- first.ShutDown(ctx) }()
		receiveClosed(t, cut.ctx.Done())
		cut.end(cut.ctx.Err())
		if err := receive(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("ShutDown = %v", err)
		}
		second := newQueue(t, env, dueq.Options{})
		subscribe(t, second, topic, a, b)
		again := b.next()
		again.want(t, id, "x", 1) // no attempt was used up
		again.end(nil)
		awaitGone(t, second, topic, id)
		a.none()
		conserved(t, env, topic)
	})
}

// Dead events start anew with all handlers.
func TestRevivedEventRunsAllHandlers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 1})
		a, b := newStage(t), newStage(t)
		subscribe(t, q, topic, a, b)
		id := publish(t, q, topic, "x", past())
		for range 2 {
			a.next().end(nil)
			b.next().end(errBroken)
			awaitState(t, q, topic, id, dueq.StateDead)
			reschedule(t, q, id, past())
		}
		a.next().end(nil)
		b.next().end(nil)
		awaitGone(t, q, topic, id)
	})
}

// Once the time is up no further handler starts; those that have succeeded do
// not run again.
func TestTimeoutBetweenHandlers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{HandlerTimeout: time.Second, Backoff: noPause})
		a, b := newStage(t), newStage(t)
		subscribe(t, q, topic, a, b)
		id := publish(t, q, topic, "x", past())
		first := a.next()
		receiveClosed(t, first.ctx.Done())
		first.end(nil)
		second := b.next()
		second.want(t, id, "x", 2)
		second.end(nil)
		awaitGone(t, q, topic, id)
		a.none()
	})
}

func TestMostHandlers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 64
		q := newQueue(t, env, dueq.Options{Backoff: noPause, MaxAttempts: 1000})
		var runs [n]atomic.Int32
		handlers := make([]dueq.Handler, n)
		for i := range handlers {
			handlers[i] = dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
				runs[i].Add(1)
				if e.Attempt <= i%5 || i == n-1 && e.Attempt < 10 {
					return fmt.Errorf("handler %d", i)
				}
				return nil
			})
		}
		subscribe(t, q, topic, handlers...)
		id := publish(t, q, topic, "x", past())
		awaitGone(t, q, topic, id)
		for i := range runs {
			want := int32(i%5 + 1)
			if i == n-1 {
				want = 10
			}
			if got := runs[i].Load(); got != want {
				t.Errorf("handler %d ran %d times, want %d", i, got, want)
			}
		}
	})
}

// Each handler gets the event as it was published, whatever others have done
// with theirs.
func TestEventIsTheHandlersOwn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: noPause})
		a, b := newStage(t), newStage(t)
		subscribe(t, q, topic, a, b)
		due := past()
		id := publish(t, q, topic, "body", due, dueq.WithMetadata(map[string]string{"k": "v"}), dueq.WithMaxAttempts(7))
		for attempt := 1; attempt <= 2; attempt++ {
			for _, st := range []*stage{a, b} {
				got := st.next()
				got.want(t, id, "body", attempt)
				sameTime(t, "effect time", got.EffectTime, due)
				if got.Topic != topic || got.MaxAttempts != 7 || len(got.Metadata) != 1 || got.Metadata["k"] != "v" {
					t.Errorf("got %+v", got.Event)
				}
				copy(got.Body, "????")
				got.Metadata["k"], got.ID, got.MaxAttempts = "?", "?", 1
				if attempt == 1 {
					got.end(errBroken)
				} else {
					got.end(nil)
				}
			}
		}
		awaitGone(t, q, topic, id)
	})
}

func TestManyTopics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 50
		q := newQueue(t, env, dueq.Options{})
		all := make(seen, n)
		name := func(i int) string { return fmt.Sprint("topic ", i) }
		for i := range n {
			subscribe(t, q, name(i), all)
		}
		want := map[string]string{}
		for i := range n {
			want[publish(t, q, name(i), "x", time.Now().Add(time.Duration(i)*time.Millisecond))] = name(i)
		}
		for range n {
			e := receive(t, all)
			if want[e.ID] != e.Topic {
				t.Errorf("event of topic %q came to %q", want[e.ID], e.Topic)
			}
			delete(want, e.ID)
		}
	})
}
