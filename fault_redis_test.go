package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// faultLog notes which events were handled, how often, and whether early.
type faultLog struct {
	mu  sync.Mutex
	ran map[string]int
}

func newFaultLog() *faultLog { return &faultLog{ran: make(map[string]int)} }

func (l *faultLog) HandleEvent(_ context.Context, e *dueq.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[e.ID]++
	return nil
}

// missing are those of the ids that were never handled.
func (l *faultLog) missing(ids []string) (missing []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if l.ran[id] == 0 {
			missing = append(missing, id)
		}
	}
	return missing
}

// repeated is how many runs were not the first of their event.
func (l *faultLog) repeated() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, runs := range l.ran {
		n += runs - 1
	}
	return n
}

// faultPublisher publishes events to topic a until it is stopped, and notes the ids of
// those that Redis took.
type faultPublisher struct {
	ids    []string
	failed []error
	stop   func()
}

func startFaultPublisher(t *testing.T, q *dueq.Queue) *faultPublisher {
	p := &faultPublisher{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			id, err := q.PublishEvent(ctx, "a", nil, time.Now().Add(rand.N(50*time.Millisecond)))
			if err == nil {
				p.ids = append(p.ids, id)
			} else if ctx.Err() == nil {
				p.failed = append(p.failed, err)
			}
			<-tick.C
		}
	})
	p.stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(p.stop)
	return p
}

// faultFreeze stops a server's process, as a machine that hangs, until thaw.
func faultFreeze(t *testing.T, rdb *redis.Client) (thaw func()) {
	t.Helper()
	pid := faultInfo(t, rdb, "process_id")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// A Redis that is killed and comes back, with an append-only file, has all that
// it has said it has; the processes find it again by themselves.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	env := server.Env()
	log := newFaultLog()
	for range 2 {
		subscribe(t, newQueue(t, env, dueq.Options{Lease: 2 * time.Second, Fallback: 500 * time.Millisecond}), "a", log)
	}
	q := newQueue(t, env, dueq.Options{})
	far, err := q.PublishEvents(t.Context(), "a", faultEvents(500, faultTime(t, env.Client).Add(2*time.Second), time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p := startFaultPublisher(t, q)
	for _, end := range []func(){server.Kill, server.Stop, server.Kill} {
		<-time.After(300 * time.Millisecond)
		end()
		<-time.After(100 * time.Millisecond)
		server.Restart()
		id := ""
		eventually(t, "publishing works again", func() bool {
			id, err = q.PublishEvent(t.Context(), "a", nil, time.Now())
			return err == nil
		})
		eventually(t, "delivery works again", func() bool { return len(log.missing([]string{id})) == 0 })
		conserved(t, env, "a")
	}
	p.stop()
	awaitEmpty(t, q, "a")
	if missing := log.missing(append(far, p.ids...)); len(missing) > 0 {
		t.Errorf("of %d events %d were never handled: %v", len(far)+len(p.ids), len(missing), missing)
	}
	t.Logf("%d events, %d repeated; %d publishes failed, such as with %v", len(far)+len(p.ids), log.repeated(), len(p.failed), p.failed)
	conserved(t, env, "a")
}

// A Redis that comes back empty does not strand what is published to it then.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	env := server.Env()
	q := newQueue(t, env, dueq.Options{Lease: 500 * time.Millisecond, Fallback: 300 * time.Millisecond})
	got := newStage(t)
	subscribe(t, q, "a", got)
	for i := range 3 {
		publish(t, q, "a", "lost", time.Now())
		running := got.next() // while the server forgets it
		lost := publish(t, q, "a", "lost", time.Now().Add(time.Hour))
		if i == 0 {
			running.end(nil)
			awaitGone(t, q, "a", running.ID)
		}
		server.Kill()
		server.Restart()
		id := ""
		eventually(t, "publishing works again", func() bool {
			var err error
			id, err = q.PublishEvent(t.Context(), "a", []byte("new"), time.Now())
			return err == nil
		})
		var a *act
		for a = got.next(); a.ID != id; a = got.next() {
			a.end(nil)
		}
		// It runs for longer than the lease: undisturbed, or it comes again.
		over, runs := time.Now().Add(800*time.Millisecond), true
		eventually(t, "event gone", func() bool {
			select {
			case again := <-got.acts:
				if runs {
					a.end(nil)
				}
				a, runs = again, true
			default:
			}
			if time.Now().Before(over) {
				return false
			}
			if runs {
				a.end(nil)
				runs = false
			}
			_, err := q.Get(t.Context(), "a", id)
			return errors.Is(err, dueq.ErrNotFound)
		})
		if i > 0 {
			running.end(nil)
		}
		if _, err := q.Get(t.Context(), "a", lost); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("Get of a forgotten event: %v", err)
		}
		conserved(t, env, "a")
	}
}

// Scripts that the server forgets are sent again.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	log := newFaultLog()
	q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
	subscribe(t, q, "a", log)
	p := startFaultPublisher(t, q)
	for range 50 {
		if err := env.Client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
	p.stop()
	if len(p.failed) > 0 {
		t.Errorf("%d publishes failed, the first with %v", len(p.failed), p.failed[0])
	}
	awaitEmpty(t, q, "a")
	if missing := log.missing(p.ids); len(missing) > 0 || log.repeated() > 0 {
		t.Errorf("%d events missing, %d repeated", len(missing), log.repeated())
	}
}

// A Redis without memory refuses publishes, and everything else goes on.
func TestRedisFull(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t, "--maxmemory-policy", "noeviction").Env()
	q := newQueue(t, env, dueq.Options{
		Lease: 3 * time.Second, Fallback: 300 * time.Millisecond, MaxAttempts: 3,
		Backoff: func(int, error) time.Duration { return 50 * time.Millisecond },
	})
	setMemory := func(limit string) {
		t.Helper()
		if err := env.Client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	long := newStage(t)
	subscribe(t, q, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		switch string(e.Body) {
		case "long":
			return long.HandleEvent(ctx, e)
		case "retry":
			if e.Attempt == 1 {
				return errBroken
			}
		case "bury":
			return errBroken
		}
		return nil
	}))
	const each = 30
	var events []dueq.NewEvent
	for range each {
		for _, what := range []string{"ack", "retry", "bury"} {
			events = append(events, dueq.NewEvent{Body: []byte(what), EffectTime: time.Now().Add(200 * time.Millisecond)})
		}
	}
	if _, err := q.PublishEvents(t.Context(), "a", events); err != nil {
		t.Fatal(err)
	}
	id := publish(t, q, "a", "long", time.Now())
	a := long.next()

	setMemory("1")
	_, err := q.PublishEvent(t.Context(), "a", nil, time.Now())
	if err == nil || !strings.Contains(err.Error(), "OOM") || errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Errorf("publish to a full Redis: %v", err)
	}
	eventually(t, "all are settled", func() bool {
		s := stats(t, q, "a")
		return s.Acked == 2*each && s.Buried == each && s.Retried == 3*each
	})
	select { // the long one goes on, for several leases
	case <-a.ctx.Done():
		t.Errorf("the ctx of a running handler ended: %v", context.Cause(a.ctx))
	case <-time.After(7 * time.Second):
	}
	a.end(nil)
	awaitGone(t, q, "a", id)

	setMemory("0")
	publish(t, q, "a", "ack", time.Now())
	eventually(t, "publishing works again", func() bool { return stats(t, q, "a").Acked == 2*each+2 })
	long.none()
	conserved(t, env, "a")
}

// A Redis that has become a replica refuses everything, until it is a master
// again.
func TestRedisReadOnly(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	q := newQueue(t, env, dueq.Options{Lease: holds, Fallback: 300 * time.Millisecond})
	got := newStage(t)
	subscribe(t, q, "a", got)
	running := publish(t, q, "a", "running", time.Now())
	a := got.next()
	soon := time.Now().Add(2 * time.Second) // when it has become a replica
	due := publish(t, q, "a", "due", soon)

	if err := env.Client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := q.PublishEvent(t.Context(), "a", nil, time.Now())
	if err == nil || !strings.Contains(err.Error(), "READONLY") || errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Errorf("publish to a replica: %v", err)
	}
	if err := q.Cancel(t.Context(), "a", due); err == nil || errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Errorf("cancel on a replica: %v", err)
	}
	a.end(nil) // tried until it can be
	<-time.After(time.Until(soon) + 300*time.Millisecond)
	got.none()
	if err := env.Client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	b := got.next()
	b.want(t, due, "due", 1)
	b.end(nil)
	awaitGone(t, q, "a", running)
	publish(t, q, "a", "new", time.Now())
	got.next().end(nil)
	awaitEmpty(t, q, "a")
	conserved(t, env, "a")
}

// A queue can be made, subscribed and shut down while Redis is down, and works
// once it is up.
func TestRedisDownAtFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	env := server.Env()
	server.Kill()
	never := newQueue(t, env, dueq.Options{})
	subscribe(t, never, "a", newFaultLog())
	q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
	log := newFaultLog()
	subscribe(t, q, "a", log)
	start := time.Now()
	_, err := q.PublishEvent(t.Context(), "a", nil, time.Now())
	if err == nil || errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Errorf("publish to no server: %v", err)
	}
	t.Logf("the error came after %v", time.Since(start))
	shutDown(t, never)

	server.Restart()
	var id string
	eventually(t, "publishing works", func() bool {
		id, err = q.PublishEvent(t.Context(), "a", nil, time.Now())
		return err == nil
	})
	eventually(t, "delivery works", func() bool { return len(log.missing([]string{id})) == 0 })
	if topics, err := q.Topics(t.Context()); err != nil || fmt.Sprint(topics) != "[a]" {
		t.Errorf("Topics = %v, %v", topics, err)
	}
}

// A Redis that hangs for longer than a lease, or even than the clients wait for
// its replies, loses nothing.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	const pause = time.Second
	for _, timeout := range []time.Duration{200 * time.Millisecond, 10 * time.Second} {
		t.Run(fmt.Sprint("timeout ", timeout), func(t *testing.T) {
			t.Parallel()
			env := redistest.Start(t).Env()
			log := newFaultLog()
			queue := func() *dueq.Queue {
				rdb := redis.NewClient(&redis.Options{Addr: env.Addr, ReadTimeout: timeout, WriteTimeout: timeout})
				t.Cleanup(func() { _ = rdb.Close() })
				return newQueueOn(t, env, rdb, dueq.Options{
					Lease: 300 * time.Millisecond, Fallback: 300 * time.Millisecond, MaxAttempts: 100,
				})
			}
			for range 2 {
				subscribe(t, queue(), "a", log)
			}
			q := newQueue(t, env, dueq.Options{}) // patient
			ids, err := q.PublishEvents(t.Context(), "a", faultEvents(500, faultTime(t, env.Client), 2*pause))
			if err != nil {
				t.Fatal(err)
			}
			p := startFaultPublisher(t, queue())
			<-time.After(pause / 2)
			thaw := faultFreeze(t, env.NewClient())
			<-time.After(pause)
			thaw()
			<-time.After(pause / 2)
			p.stop()
			awaitEmpty(t, q, "a")
			ids = append(ids, p.ids...)
			if missing := log.missing(ids); len(missing) > 0 {
				t.Errorf("of %d events %d were never handled", len(ids), len(missing))
			}
			if timeout < pause && len(p.failed) == 0 {
				t.Error("no publish noticed that the server hung")
			}
			t.Logf("%d events, %d repeated; %d publishes failed", len(ids), log.repeated(), len(p.failed))
			conserved(t, env, "a")
		})
	}
}
