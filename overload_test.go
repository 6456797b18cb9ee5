package dueq_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// Events that end their process are buried once their attempts are used up, with
// no run more, and nothing beside them is lost.
func TestPoison(t *testing.T) {
	t.Parallel()
	const poison, others, attempts = 2, 100, 3
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", MaxAttempts: attempts, Concurrency: 4,
		Lease: 500 * time.Millisecond, Fallback: 200 * time.Millisecond,
	}
	q := newQueue(t, env, dueq.Options{})
	poisonous := map[string]bool{}
	for i := range others {
		if i%(others/poison) == 0 {
			poisonous[publish(t, q, "a", "exit", past())] = true
		}
		publish(t, q, "a", "work", past())
	}
	settled := func() bool {
		s := stats(t, q, "a")
		return s.Scheduled+s.Ready+s.Leased == 0
	}
	crashes := 0
	for {
		config.Name = fmt.Sprint("w", crashes)
		w := faultStart(t, config)
		eventually(t, "a crash, or all settled", func() bool {
			select {
			case <-w.done:
				return true
			default:
				return settled()
			}
		})
		if settled() {
			w.signal(syscall.SIGTERM)
			_ = w.wait(t)
			break
		}
		if err := w.wait(t); err == nil || !strings.Contains(err.Error(), "exit status 7") {
			t.Fatalf("worker %s: %v", config.Name, err)
		}
		crashes++
	}
	if most := poison * attempts; crashes == 0 || crashes > most {
		t.Errorf("%d crashes, at most %d were to be", crashes, most)
	}
	last := map[string]int{}
	for _, r := range config.faultRuns(t, env.Client) {
		if r.Attempt <= last[r.ID] || r.Attempt > attempts {
			t.Errorf("%+v, after attempt %d", r, last[r.ID])
		}
		last[r.ID] = r.Attempt
	}
	dead, err := env.Client.ZRange(t.Context(), faultLane(env.Namespace).Dead, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range dead {
		delete(poisonous, id)
		if info := get(t, q, "a", id); info.Attempts != attempts || info.LastError != readyqueue.LostCause || len(info.Body) == 0 {
			t.Errorf("buried as %+v", info)
		}
	}
	s := stats(t, q, "a")
	if len(poisonous) > 0 || s.Acked+s.Dead != poison+others {
		t.Errorf("not buried: %v; stats %+v", poisonous, s)
	}
	if n := s.Dead - poison; n > 1 { // one may run again just when the other crash comes
		t.Errorf("%d crashes; %d events were buried for what ran beside them", crashes, n)
	}
	conserved(t, env, "a")
}

// Handlers that are slower than events come in hold up nobody: what is not
// started stays in Redis, and other topics' events come through. It counts
// goroutines, so it is not parallel.
func TestSlowHandlers(t *testing.T) {
	const n, concurrency = 5000, 8
	env := redistest.Start(t).Env()
	q := newQueue(t, env, dueq.Options{Concurrency: concurrency})
	slow, quick := newStage(t), newStage(t)
	subscribe(t, q, topic, slow)
	subscribe(t, q, "other", quick)
	publish(t, q, "other", "first", past())
	quick.next().end(nil)
	before := runtime.NumGoroutine()

	var acts []*act
	for i := range 10 { // more and more comes in while the first have not ended
		publishMany(t, q, n/10, past())
		for len(acts) < concurrency {
			acts = append(acts, slow.next())
		}
		id := publish(t, q, "other", fmt.Sprint(i), time.Now())
		a := quick.next()
		a.want(t, id, fmt.Sprint(i), 1)
		a.end(nil)
		if s := stats(t, q, topic); s.Leased != concurrency || s.Ready+s.Scheduled != (i+1)*n/10-concurrency {
			t.Errorf("%d leased, %d wait", s.Leased, s.Ready+s.Scheduled)
		}
		if more := runtime.NumGoroutine() - before; more > concurrency+20 {
			t.Errorf("%d more goroutines", more)
		}
	}
	slow.none()
	for _, a := range acts {
		a.end(nil)
	}
	for i := concurrency; i < n; i++ {
		slow.next().end(nil)
	}
	awaitEmpty(t, q, topic)
	conserved(t, env, topic)
}

// A process with thousands of topics has few goroutines and connections, and
// events of any of them come through. It counts goroutines, so it is not
// parallel.
func TestTenThousandTopics(t *testing.T) {
	const n, sample = 10_000, 40
	env := redistest.Start(t).Env()
	q := newQueue(t, env, dueq.Options{})
	other := newQueue(t, env, dueq.Options{})
	name := func(i int) string { return fmt.Sprint("topic ", i) }
	before := runtime.NumGoroutine()
	got := make(seen, sample)
	for i := range n {
		subscribe(t, q, name(i), got)
	}
	for round := range 2 {
		want := map[string]string{}
		for i := range sample {
			topic := name((i*n/sample + round) % n)
			want[publish(t, other, topic, "x", time.Now().Add(time.Duration(i%2)*time.Millisecond))] = topic
		}
		for range sample {
			e := receive(t, got)
			if want[e.ID] != e.Topic {
				t.Errorf("event of topic %q came to %q", want[e.ID], e.Topic)
			}
			delete(want, e.ID)
		}
	}
	more, connections := runtime.NumGoroutine()-before, faultInfo(t, env.NewClient(), "connected_clients")
	t.Logf("%d topics: %d goroutines, %d connections", n, more, connections)
	if more > 100 || connections > 60 {
		t.Errorf("%d goroutines, %d connections", more, connections)
	}
}

// Bodies as large as they may be, many in one call, beside small ones.
func TestLargestBodies(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, size = 24, 1 << 20
		q := newQueue(t, env, dueq.Options{})
		events := make([]dueq.NewEvent, 3*n)
		for i := range events {
			events[i] = dueq.NewEvent{Body: []byte("small"), EffectTime: past()}
			if i%3 == 0 {
				events[i].Body = bytes.Repeat([]byte{byte(i), '\n', 0xff, 0}, size/4)
			}
			if i%2 == 0 {
				events[i].EffectTime = time.Now().Add(50 * time.Millisecond)
			}
		}
		ids, err := q.PublishEvents(t.Context(), topic, events)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]byte{}
		for i, id := range ids {
			want[id] = events[i].Body
		}
		got := make(seen, len(events))
		subscribe(t, q, topic, dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			if e.Attempt == 1 && len(e.Body) == size && e.Body[0]%2 == 0 { // each comes twice
				return dueq.RetryAfter(0, errBroken)
			}
			return got.HandleEvent(ctx, e)
		}))
		for range events {
			e := receive(t, got)
			if !bytes.Equal(want[e.ID], e.Body) {
				t.Errorf("event %q has %d bytes", e.ID, len(e.Body))
			}
			delete(want, e.ID)
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}
