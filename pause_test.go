package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func ExampleQueue_Pause() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	if err := q.Pause(ctx, "mail"); err != nil {
		fmt.Println(err)
		return
	}
	handled := make(chan string)
	err := q.Subscribe("mail", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		handled <- string(e.Body)
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(ctx, "mail", []byte("hello"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	s, err := q.Stats(ctx, "mail")
	fmt.Println("paused:", s.Paused, "waiting:", s.Scheduled+s.Ready, err)
	fmt.Println(q.Resume(ctx, "mail"))
	fmt.Println(<-handled)
	// Output:
	// paused: true waiting: 1 <nil>
	// <nil>
	// hello
}

func pause(t *testing.T, q *dueq.Queue) {
	t.Helper()
	if err := q.Pause(t.Context(), topic); err != nil {
		t.Fatalf("pause: %v", err)
	}
}

func resume(t *testing.T, q *dueq.Queue) {
	t.Helper()
	if err := q.Resume(t.Context(), topic); err != nil {
		t.Fatalf("resume: %v", err)
	}
}

// A paused topic delivers nothing to anybody, while all else goes on: what runs
// finishes, what is due goes to ready, what fails waits for its retry there.
func TestPause(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first := newQueue(t, env, dueq.Options{Backoff: noPause})
		other := newQueue(t, env, dueq.Options{})
		atFirst, atLater, atMore := newStage(t), newStage(t), newStage(t)
		subscribe(t, first, topic, atFirst)
		acked := publish(t, other, topic, "acked", past())
		toAck := atFirst.next()
		publish(t, other, topic, "retried", past())
		toRetry := atFirst.next()
		publish(t, other, topic, "released", past())
		toRelease := atFirst.next()

		pause(t, other)
		pause(t, other) // once more does no harm
		publish(t, other, topic, "due", past())
		publish(t, first, topic, "falls due", time.Now().Add(20*time.Millisecond))
		toAck.end(nil)
		awaitGone(t, other, topic, acked)
		toRetry.end(errBroken)
		later := newQueue(t, env, dueq.Options{})
		subscribe(t, later, topic, atLater)
		more := newQueue(t, env, dueq.Options{Partitions: 3, Fallback: 100 * time.Millisecond})
		subscribe(t, more, topic, atMore)
		publish(t, more, topic, "in another partition", past())
		eventually(t, "four are ready", func() bool { return stats(t, other, topic).Ready == 4 })
		if s := stats(t, other, topic); !s.Paused || s.Leased != 1 || s.Scheduled != 0 || s.Delivered != 3 {
			t.Errorf("stats %+v", s)
		}
		ended := shutDownSoon(t, first, 10*time.Millisecond)
		if err := receive(t, ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ShutDown: %v", err)
		}
		toRelease.end(nil)
		if s := stats(t, other, topic); s.Ready != 5 || s.Leased != 0 || s.Delivered != 3 {
			t.Errorf("after a process has stopped: stats %+v", s)
		}
		for _, st := range []*stage{atFirst, atLater, atMore} {
			st.none()
		}
		conserved(t, env, topic)
		if report, err := other.Repair(t.Context(), topic); err != nil || len(report.Findings) != 0 || !stats(t, other, topic).Paused {
			t.Errorf("repair: %+v, %v", report, err)
		}

		resume(t, other)
		got := map[string]int{}
		for range 5 {
			select {
			case a := <-atLater.acts:
				got[string(a.Body)] = a.Attempt
				a.end(nil)
			case a := <-atMore.acts:
				got[string(a.Body)] = a.Attempt
				a.end(nil)
			case <-time.After(patience):
				t.Fatalf("delivered %v", got)
			}
		}
		for body, attempt := range map[string]int{"retried": 2, "released": 1, "due": 1, "falls due": 1, "in another partition": 1} {
			if got[body] != attempt {
				t.Errorf("%q came with attempt %d, want %d", body, got[body], attempt)
			}
		}
		awaitEmpty(t, other, topic)
		if s := stats(t, other, topic); s.Paused {
			t.Error("it is still said to be paused")
		}
		conserved(t, env, topic)
	})
}

// A pause outlives Redis and all processes.
func TestPauseLasts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	env := server.Env()
	q := newQueue(t, env, dueq.Options{})
	pause(t, q)
	publish(t, q, topic, "x", past())
	shutDown(t, q)
	server.Restart()
	q = newQueue(t, env, dueq.Options{})
	if s := stats(t, q, topic); !s.Paused || s.Ready != 1 {
		t.Errorf("stats %+v", s)
	}
	st := newStage(t)
	subscribe(t, q, topic, st)
	id := publish(t, q, topic, "y", past())
	awaitState(t, q, topic, id, dueq.StateReady)
	st.none()
	resume(t, q)
	for range 2 {
		st.next().end(nil)
	}
}

// Processes that were asleep when the topic was resumed are woken.
func TestResumeWakes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, other := newQueue(t, env, dueq.Options{}), newQueue(t, env, dueq.Options{})
		if err := other.Resume(t.Context(), topic); err != nil { // never paused, nor used
			t.Fatal(err)
		}
		pause(t, other) // before it is used
		if topics, err := other.Topics(t.Context()); err != nil || len(topics) != 1 {
			t.Errorf("topics %q, %v", topics, err)
		}
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, due := range []time.Duration{-time.Second, 20 * time.Millisecond} {
			publish(t, other, topic, "x", time.Now().Add(due))
			eventually(t, "it is ready", func() bool { return stats(t, other, topic).Ready == 1 })
			st.none()
			resume(t, other)
			st.next().end(nil)
			awaitEmpty(t, other, topic)
			pause(t, other)
		}
	})
}

// A consumer that waits gets nothing of a paused topic either, and pausing brings
// up no partitions.
func TestPauseOfConsumer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, other := newQueue(t, env, dueq.Options{Partitions: 2}), newQueue(t, env, dueq.Options{})
		c, err := q.Consume(topic)
		if err != nil {
			t.Fatal(err)
		}
		first := publish(t, q, topic, "x", past())
		claim := func() *dueq.Delivery {
			claimed, err := c.Claim(t.Context(), 10, time.Minute)
			if err != nil || len(claimed) != 1 {
				t.Errorf("claimed %v, %v", claimed, err)
				return nil
			}
			return claimed[0]
		}
		held := claim()
		pause(t, other)
		second := publish(t, q, topic, "x", past())
		got := make(chan *dueq.Delivery, 1)
		go func() { got <- claim() }()
		awaitState(t, q, topic, second, dueq.StateReady)
		if held.ID != first || held.Ack(t.Context()) != nil {
			t.Errorf("event %+v", held)
		}
		awaitGone(t, q, topic, first)
		if s := stats(t, other, topic); len(got) != 0 || s.Delivered != 1 || !s.Paused {
			t.Errorf("stats %+v", s)
		}
		if is := env.Client.SIsMember(t.Context(), key.Topics(env.Namespace), topic).Val(); is {
			t.Error("pausing has brought up a partition")
		}
		resume(t, other)
		if d := receive(t, got); d == nil || d.ID != second || d.Ack(t.Context()) != nil {
			t.Errorf("delivered %+v", d)
		}
	})
}

func TestPauseRefuses(t *testing.T) {
	env := redistest.Mini(t)
	q := newQueue(t, env, dueq.Options{})
	for what, do := range map[string]func(context.Context, string) error{"pause": q.Pause, "resume": q.Resume} {
		if err := do(t.Context(), "a{b}"); !errors.Is(err, dueq.ErrTopicInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		env.Mini.SetError("ERR broken")
		if err := do(t.Context(), topic); err == nil {
			t.Errorf("%s while Redis fails: no error", what)
		}
		env.Mini.SetError("")
	}
	shutDown(t, q)
	for what, do := range map[string]func(context.Context, string) error{"pause": q.Pause, "resume": q.Resume} {
		if err := do(t.Context(), topic); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A process that serves a paused topic with more due events than ready takes has
// nothing to do.
func TestPauseIsIdle(t *testing.T) {
	t.Parallel()
	const events, watch = bucket.HighWater + 1000, 3 * time.Second
	env := redistest.Start(t).Env()
	q := newQueue(t, env, dueq.Options{Fallback: 15 * time.Second})
	pause(t, q)
	handled := make(seen, events)
	subscribe(t, q, topic, handled)
	publishMany(t, q, events, time.Now().Add(100*time.Millisecond))
	eventually(t, "ready is full", func() bool { return stats(t, q, topic).Ready == bucket.HighWater })

	count := func() int { return faultInfo(t, env.Client.(*redis.Client), "total_commands_processed") }
	start, before := time.Now(), count()
	<-time.After(watch)
	perSecond := float64(count()-before) / time.Since(start).Seconds()
	t.Logf("%.1f commands/s", perSecond)
	if perSecond > 5 {
		t.Errorf("%.1f commands/s for a paused topic, want next to none", perSecond)
	}
	if len(handled) > 0 {
		t.Errorf("%d events were delivered", len(handled))
	}
	resume(t, q)
	awaitEmpty(t, q, topic)
	if len(handled) != events {
		t.Errorf("%d events were delivered, want %d", len(handled), events)
	}
}
