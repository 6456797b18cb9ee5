package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestBackoffIsAsked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		type question struct {
			attempt int
			cause   error
		}
		asked := make(chan question, 10)
		q := newQueue(t, env, dueq.Options{
			MaxAttempts: 4,
			Backoff: func(attempt int, cause error) time.Duration {
				asked <- question{attempt, cause}
				return []time.Duration{time.Hour, time.Minute, -time.Minute}[attempt-1]
			},
		})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		for attempt := 1; attempt <= 4; attempt++ {
			a := st.next()
			a.want(t, id, "x", attempt)
			failed := time.Now().Truncate(time.Millisecond)
			a.end(fmt.Errorf("attempt %d: %w", attempt, errBroken))
			if attempt == 4 {
				break
			}
			if got := receive(t, asked); got.attempt != attempt || !errors.Is(got.cause, errBroken) {
				t.Errorf("backoff was asked for attempt %d, %v; want %d", got.attempt, got.cause, attempt)
			}
			if attempt == 3 {
				continue // less than zero is zero
			}
			pause := []time.Duration{time.Hour, time.Minute}[attempt-1]
			info := awaitState(t, q, topic, id, dueq.StateScheduled)
			if d := info.Due.Sub(failed); d < pause || d > pause+patience {
				t.Errorf("after attempt %d it waits %v, want %v", attempt, d, pause)
			}
			reschedule(t, q, id, past())
		}
		awaitState(t, q, topic, id, dueq.StateDead)
		select {
		case got := <-asked:
			t.Errorf("backoff was asked after the last attempt: %v", got)
		default:
		}
		conserved(t, env, topic)
	})
}

// 1 s, doubled with each attempt up to 10 min, and up to half as much again
// until the bound, from two thirds of the bound there.
func TestDefaultBackoff(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 100})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		for attempt := 1; attempt < 40; attempt++ {
			a := st.next()
			a.want(t, id, "x", attempt)
			before := time.Now().Add(-time.Millisecond)
			a.end(errBroken)
			pause := awaitState(t, q, topic, id, dueq.StateScheduled).Due.Sub(before)
			slack := time.Since(before)
			low := min(time.Second<<min(attempt-1, 10), 400*time.Second)
			high := min(1500*time.Millisecond<<min(attempt-1, 10), 600*time.Second)
			if pause < low || pause > high+slack {
				t.Errorf("pause of %v after attempt %d, want %v to %v", pause, attempt, low, high)
			}
			reschedule(t, q, id, past())
		}
		st.next().end(nil)
		awaitGone(t, q, topic, id)
	})
}

func TestMaxAttempts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 3, Backoff: noPause})
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, c := range []struct {
			opts []dueq.PublishOption
			want int
		}{
			{nil, 3},
			{[]dueq.PublishOption{dueq.WithMaxAttempts(1)}, 1},
			{[]dueq.PublishOption{dueq.WithMaxAttempts(5)}, 5},
		} {
			id := publish(t, q, topic, "x", past(), c.opts...)
			for attempt := 1; attempt <= c.want; attempt++ {
				a := st.next()
				a.want(t, id, "x", attempt)
				if a.MaxAttempts != c.want {
					t.Errorf("MaxAttempts = %d, want %d", a.MaxAttempts, c.want)
				}
				a.end(fmt.Errorf("attempt %d", attempt))
			}
			info := awaitState(t, q, topic, id, dueq.StateDead)
			if info.Attempts != c.want || info.LastError != fmt.Sprint("attempt ", c.want) {
				t.Errorf("dead after %d attempts of %q, want %d", info.Attempts, info.LastError, c.want)
			}
		}
		st.none()
		conserved(t, env, topic)
	})
}

func TestRetryAfter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never, MaxAttempts: 100})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		attempt := 0
		for _, c := range []struct {
			err   error
			pause time.Duration
		}{
			{dueq.RetryAfter(time.Minute, errBroken), time.Minute},
			{fmt.Errorf("wrapped: %w", dueq.RetryAfter(2*time.Minute, errBroken)), 2 * time.Minute},
			{errors.Join(errors.New("other"), dueq.RetryAfter(3*time.Minute, nil)), 3 * time.Minute},
			{dueq.RetryAfter(1<<62, errBroken), 1 << 62},
			{errBroken, time.Hour},
		} {
			attempt++
			a := st.next()
			a.want(t, id, "x", attempt)
			failed := time.Now().Truncate(time.Millisecond)
			a.end(c.err)
			info := awaitState(t, q, topic, id, dueq.StateScheduled)
			if d := info.Due.Sub(failed); d < c.pause || d-c.pause > patience {
				t.Errorf("after %v it waits %v, want %v", c.err, d, c.pause)
			}
			if info.Attempts != attempt || info.LastError != c.err.Error() {
				t.Errorf("%d attempts, last error %q; want %d, %q", info.Attempts, info.LastError, attempt, c.err)
			}
			reschedule(t, q, id, past())
		}
		for _, pause := range []time.Duration{0, -time.Hour, time.Millisecond} {
			st.next().end(dueq.RetryAfter(pause, errBroken))
		}
		st.next().end(nil)
		awaitGone(t, q, topic, id)
		if err := dueq.RetryAfter(time.Second, errBroken); !errors.Is(err, errBroken) {
			t.Errorf("%v does not wrap its cause", err)
		}
	})
}

// A pause asked for is a pause kept, by the server's clock.
func TestRetryAfterIsNeverEarly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 100})
		st := newStage(t)
		subscribe(t, q, topic, st)
		publish(t, q, topic, "x", past())
		a := st.next()
		for range 50 {
			const pause = 1500 * time.Microsecond
			failed := time.Now()
			a.end(dueq.RetryAfter(pause, errBroken))
			a = st.next()
			if d := a.at.Sub(failed); d < pause {
				t.Errorf("it came again after %v, want %v", d, pause)
			}
		}
		a.end(nil)
	})
}

func TestSkipRetry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, err := range []error{
			dueq.SkipRetry(errBroken),
			fmt.Errorf("wrapped: %w", dueq.SkipRetry(errBroken)),
			dueq.RetryAfter(time.Hour, dueq.SkipRetry(errBroken)),
			dueq.SkipRetry(nil),
		} {
			id := publish(t, q, topic, "x", past())
			st.next().end(err)
			if info := awaitState(t, q, topic, id, dueq.StateDead); info.Attempts != 1 || info.LastError != err.Error() {
				t.Errorf("dead after %d attempts of %q, want 1 of %q", info.Attempts, info.LastError, err)
			}
		}
		if err := dueq.SkipRetry(errBroken); !errors.Is(err, errBroken) {
			t.Errorf("%v does not wrap its cause", err)
		}
		conserved(t, env, topic)
	})
}

func TestHandlerTimeout(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{HandlerTimeout: 20 * time.Millisecond, Backoff: never})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		a := st.next()
		receiveClosed(t, a.ctx.Done())
		if cause := context.Cause(a.ctx); !errors.Is(cause, dueq.ErrHandlerTimeout) {
			t.Errorf("ctx ended with %v", cause)
		}
		if err := a.ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ctx.Err() = %v", err)
		}
		a.end(a.ctx.Err())
		info := awaitState(t, q, topic, id, dueq.StateScheduled)
		if info.Attempts != 1 || !strings.Contains(info.LastError, dueq.ErrHandlerTimeout.Error()) {
			t.Errorf("%d attempts, last error %q", info.Attempts, info.LastError)
		}
		// Success is success, however late.
		reschedule(t, q, id, past())
		a = st.next()
		receiveClosed(t, a.ctx.Done())
		a.end(nil)
		awaitGone(t, q, topic, id)
	})
}

// A handler that ignores its ctx keeps its event and its slot until it returns,
// far beyond the lease: it never overlaps with itself.
func TestHandlerThatIgnoresItsTimeout(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		opts := dueq.Options{
			HandlerTimeout: 10 * time.Millisecond, Concurrency: 1, Lease: 2 * time.Second,
			Fallback: 100 * time.Millisecond, Backoff: noPause,
		}
		q := newQueue(t, env, opts)
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		a := st.next()
		receiveClosed(t, a.ctx.Done())
		next := publish(t, q, topic, "next", past())
		awaitExtended(t, env, 2*opts.Lease)
		st.none()
		if info := get(t, q, topic, id); info.State != dueq.StateLeased {
			t.Errorf("state %s, want leased", info.State)
		}
		if info := get(t, q, topic, next); info.State != dueq.StateReady {
			t.Errorf("the next event is %s, want ready", info.State)
		}
		other := newQueue(t, env, opts)
		otherStage := newStage(t)
		subscribe(t, other, topic, otherStage)
		b := otherStage.next()
		b.want(t, next, "next", 1)
		b.end(nil)
		awaitGone(t, q, topic, next)
		awaitExtended(t, env, opts.Lease)
		otherStage.none()
		shutDown(t, other)
		a.end(errBroken)
		a = st.next()
		a.want(t, id, "x", 2)
		a.end(nil)
		awaitGone(t, q, topic, id)
		if s := stats(t, q, topic); s.Expired != 0 {
			t.Errorf("%d events expired", s.Expired)
		}
		conserved(t, env, topic)
	})
}

// awaitExtended polls until the deadline of the topic's sessions has moved on by
// so much.
func awaitExtended(t *testing.T, env *redistest.Env, by time.Duration) {
	t.Helper()
	sessions := key.NewLane(env.Namespace, topic, 0, 1, 1).Sessions
	deadline := func() time.Time {
		zs, err := env.Client.ZRangeWithScores(t.Context(), sessions, -1, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(zs) == 0 {
			return time.Time{}
		}
		return time.UnixMilli(int64(zs[0].Score))
	}
	var first time.Time
	eventually(t, "lease extended", func() bool {
		if first.IsZero() {
			first = deadline()
		}
		return !first.IsZero() && deadline().Sub(first) >= by
	})
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text } // panics on nil

type panickyError struct{}

func (panickyError) Error() string { panic("no text") }

type panickyUnwrap struct{}

func (panickyUnwrap) Error() string { return "unwrap me" }
func (panickyUnwrap) Unwrap() error { panic("no cause") }

// Whatever a handler does, its event is retried and the handler's slot is free
// for the next one.
func TestHandlersThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct {
		misbehave func() error
		want      []string // in the last error
	}{
		"panic":              {func() error { panic("boom") }, []string{"panic: boom", "failure_test.go"}},
		"panic with error":   {func() error { panic(errBroken) }, []string{"panic: broken", "failure_test.go"}},
		"panic with nil":     {func() error { panic(nil) }, []string{"panic"}},
		"out of range":       {func() error { var s []int; return fmt.Errorf("%d", s[3]) }, []string{"out of range", "failure_test.go"}},
		"Goexit":             {func() error { runtime.Goexit(); return nil }, []string{"Goexit"}},
		"nil pointer error":  {func() error { var e *nilError; return e }, nil},
		"error that panics":  {func() error { return panickyError{} }, nil},
		"unwrap that panics": {func() error { return panickyUnwrap{} }, nil},
		"binary error":       {func() error { return errors.New("a|b|\xff\x00\n|c") }, []string{"a|b|\xff\x00\n|c"}},
		"empty error":        {func() error { return errors.New("") }, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{Concurrency: 1, Backoff: never, MaxAttempts: 3})
				st := newStage(t)
				subscribe(t, q, topic, st)
				id := publish(t, q, topic, "x", past())
				for attempt := 1; attempt <= 3; attempt++ {
					a := st.next()
					a.want(t, id, "x", attempt)
					a.do(c.misbehave)
					state := dueq.StateScheduled
					if attempt == 3 {
						state = dueq.StateDead
					}
					info := awaitState(t, q, topic, id, state)
					for _, want := range c.want {
						if info.Attempts != attempt || !strings.Contains(info.LastError, want) {
							t.Errorf("%d attempts, last error %q; want %d, %q", info.Attempts, info.LastError, attempt, want)
						}
					}
					if attempt < 3 {
						reschedule(t, q, id, past())
					}
				}
				good := publish(t, q, topic, "good", past())
				st.next().end(nil)
				awaitGone(t, q, topic, good)
				conserved(t, env, topic)
			})
		})
	}
}

func TestBackoffThatPanics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{
			Concurrency: 1,
			Backoff:     func(int, error) time.Duration { panic("no pause") },
		})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		st.next().end(errBroken)
		if info := awaitState(t, q, topic, id, dueq.StateScheduled); info.Attempts != 1 || !info.Due.After(time.Now().Add(-time.Second)) {
			t.Errorf("%d attempts, due %v", info.Attempts, info.Due)
		}
		publish(t, q, topic, "good", past())
		st.next().end(nil)
	})
}

func TestPersistFn(t *testing.T) {
	type call struct {
		*dueq.Event
		cause error
	}
	for name, c := range map[string]struct {
		persist  func() error
		lastText []string // of the dead event; nil: it is gone
	}{
		"takes it":   {func() error { return nil }, nil},
		"fails":      {func() error { return errors.New("disk full") }, []string{"attempt 2", "disk full"}},
		"panics":     {func() error { panic("disk on fire") }, []string{"attempt 2", "disk on fire", "failure_test.go"}},
		"nil error":  {func() error { var e *nilError; return e }, []string{"attempt 2"}},
		"SkipRetry":  {func() error { return dueq.SkipRetry(errBroken) }, []string{"attempt 2", "broken"}},
		"RetryAfter": {func() error { return dueq.RetryAfter(0, errBroken) }, []string{"attempt 2", "broken"}},
		"Goexit":     {func() error { runtime.Goexit(); return nil }, []string{"attempt 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				calls := make(chan call, 10)
				q := newQueue(t, env, dueq.Options{
					MaxAttempts: 2, Backoff: noPause, Concurrency: 1,
					PersistFn: func(_ context.Context, e *dueq.Event, cause error) error {
						calls <- call{e, cause}
						return c.persist()
					},
				})
				st := newStage(t)
				subscribe(t, q, topic, st)
				id := publish(t, q, topic, "body\x00", past(), dueq.WithMetadata(map[string]string{"k": "v"}))
				for attempt := 1; attempt <= 2; attempt++ {
					a := st.next()
					a.want(t, id, "body\x00", attempt)
					a.Body[0] = '!' // the handler's own
					a.end(fmt.Errorf("attempt %d: %w", attempt, errBroken))
				}
				got := receive(t, calls)
				if got.ID != id || got.Topic != topic || string(got.Body) != "body\x00" || got.Attempt != 2 || got.Metadata["k"] != "v" {
					t.Errorf("PersistFn got %+v", got.Event)
				}
				if !errors.Is(got.cause, errBroken) || got.cause.Error() != "attempt 2: broken" {
					t.Errorf("PersistFn got cause %v", got.cause)
				}
				if c.lastText == nil {
					awaitGone(t, q, topic, id)
				} else {
					info := awaitState(t, q, topic, id, dueq.StateDead)
					if info.Attempts != 2 || string(info.Body) != "body\x00" {
						t.Errorf("dead after %d attempts with %q", info.Attempts, info.Body)
					}
					for _, text := range c.lastText {
						if !strings.Contains(info.LastError, text) {
							t.Errorf("last error %q, want %q in it", info.LastError, text)
						}
					}
				}
				good := publish(t, q, topic, "good", past())
				st.next().end(nil)
				awaitGone(t, q, topic, good)
				if len(calls) > 0 {
					t.Errorf("PersistFn was called again")
				}
				conserved(t, env, topic)
			})
		})
	}
}

// PersistFn's ctx ends with HandlerTimeout, too.
func TestPersistFnTimesOut(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{
			HandlerTimeout: 20 * time.Millisecond,
			PersistFn: func(ctx context.Context, _ *dueq.Event, _ error) error {
				<-ctx.Done()
				return context.Cause(ctx)
			},
		})
		subscribe(t, q, topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return dueq.SkipRetry(errBroken) }))
		id := publish(t, q, topic, "x", past())
		info := awaitState(t, q, topic, id, dueq.StateDead)
		if !strings.Contains(info.LastError, dueq.ErrHandlerTimeout.Error()) || info.Attempts != 1 {
			t.Errorf("dead after %d attempts, last error %q", info.Attempts, info.LastError)
		}
	})
}

// Many events that fail in all ways: nothing is lost, nothing is left over.
func TestFailuresUnderLoad(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 600
		var mu sync.Mutex
		persisted, handled := map[string]int{}, map[string]int{}
		q := newQueue(t, env, dueq.Options{
			MaxAttempts: 3, Backoff: noPause, Concurrency: 20,
			PersistFn: func(_ context.Context, e *dueq.Event, _ error) error {
				mu.Lock()
				defer mu.Unlock()
				persisted[e.ID]++
				return nil
			},
		})
		subscribe(t, q, topic, dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			switch k := e.Body[0] % 6; {
			case k == 0 && e.Attempt < 3:
				panic("fails twice")
			case k == 1:
				return dueq.SkipRetry(errBroken)
			case k == 2:
				return errBroken
			case k == 3 && e.Attempt < 2:
				runtime.Goexit()
			case k == 4 && e.Attempt < 3:
				return dueq.RetryAfter(time.Millisecond, errBroken)
			}
			mu.Lock()
			defer mu.Unlock()
			handled[e.ID]++
			return nil
		}))
		events := make([]dueq.NewEvent, n)
		for i := range events {
			events[i] = dueq.NewEvent{Body: []byte{byte(i % 6)}, EffectTime: time.Now()}
		}
		ids, err := q.PublishEvents(t.Context(), topic, events)
		if err != nil {
			t.Fatal(err)
		}
		awaitEmpty(t, q, topic)
		mu.Lock()
		defer mu.Unlock()
		for i, id := range ids {
			wantPersisted := 0
			if k := i % 6; k == 1 || k == 2 {
				wantPersisted = 1
			}
			if persisted[id] != wantPersisted || handled[id] != 1-wantPersisted {
				t.Errorf("event %d was handled %d times and persisted %d times", i, handled[id], persisted[id])
			}
		}
		if s := stats(t, q, topic); s.Acked != n || s.Published != n || s.Delivered != s.Acked+s.Retried {
			t.Errorf("stats %+v", s)
		}
		conserved(t, env, topic)
	})
}
