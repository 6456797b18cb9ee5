package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// faultEvents are n events with a number as body, due at random within spread.
func faultEvents(n int, from time.Time, spread time.Duration) []dueq.NewEvent {
	events := make([]dueq.NewEvent, n)
	for i := range events {
		events[i] = dueq.NewEvent{Body: []byte("work"), EffectTime: from.Add(rand.N(spread))}
	}
	return events
}

// faultCheckRuns checks what all workers report of their runs: every id ran,
// none early, each run with more attempts used up than the one before it, and
// again only after its worker was killed. It returns how many runs were
// repeated.
func faultCheckRuns(t *testing.T, runs []faultRun, ids []string, killed []string) (repeated int) {
	t.Helper()
	of := make(map[string][]faultRun, len(ids))
	for _, r := range runs {
		of[r.ID] = append(of[r.ID], r)
		if r.Early > 0 {
			t.Errorf("id %s ran %v early", r.ID, r.Early)
		}
	}
	for _, id := range ids {
		if len(of[id]) == 0 {
			t.Errorf("id %s never ran", id)
		}
		for i, r := range of[id] {
			if i > 0 && r.Attempt <= of[id][i-1].Attempt {
				t.Errorf("id %s ran with attempt %d after attempt %d", id, r.Attempt, of[id][i-1].Attempt)
			}
			if i < len(of[id])-1 {
				repeated++
				if !slices.Contains(killed, r.Worker) {
					t.Errorf("id %s ran again though its worker %s was not killed: %+v", id, r.Worker, of[id])
				}
			}
		}
		delete(of, id)
	}
	if len(of) > 0 {
		t.Errorf("%d ids ran that nobody published", len(of))
	}
	return repeated
}

// Worker processes are killed at random while they drain a few thousand events.
func TestKillWorkers(t *testing.T) {
	t.Parallel()
	const first, during, kills, concurrency = 2000, 1000, 8, 8
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", MaxAttempts: 100,
		Lease: 6 * time.Second, Fallback: time.Second, Pause: 8 * time.Millisecond, Concurrency: concurrency,
	}
	q := newQueue(t, env, dueq.Options{})
	now := faultTime(t, env.Client)
	ids, err := q.PublishEvents(t.Context(), "a", faultEvents(first, now.Add(-time.Second), 3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range during {
			id, err := q.PublishEvent(t.Context(), "a", []byte("work"), time.Now().Add(rand.N(200*time.Millisecond)))
			if err != nil {
				t.Error(err)
				return
			}
			ids = append(ids, id)
		}
	})

	var workers []*faultWorker
	var killed []string
	begin := func() {
		config.Name = fmt.Sprint("w", len(workers)+len(killed))
		workers = append(workers, faultStart(t, config))
	}
	for range 3 {
		begin()
	}
	for range kills {
		conserved(t, env, "a")
		<-time.After(50*time.Millisecond + rand.N(200*time.Millisecond))
		i := rand.IntN(len(workers))
		workers[i].kill()
		killed = append(killed, workers[i].name)
		workers = slices.Delete(workers, i, i+1)
		begin()
	}
	publishing.Wait()
	faultEmpty(t, env)

	runs := config.faultRuns(t, env.Client)
	repeated := faultCheckRuns(t, runs, ids, killed)
	t.Logf("%d events, %d runs, %d of them repeated after %d kills", len(ids), len(runs), repeated, kills)
	// A process holds as many as it runs, and those whose acks are on their way.
	if most := 8 * concurrency * kills; repeated > most {
		t.Errorf("%d runs were repeated, more than the %d that the killed workers can have held", repeated, most)
	}
	if s, err := q.Stats(t.Context(), "a"); err != nil || s.Acked != len(ids) || s.Buried != 0 || s.Expired < repeated {
		t.Errorf("Stats = %+v, %v", s, err)
	}
}

// An event that kills each process that runs it is buried when its attempts are
// used up, without running once more.
func TestKillingEventIsBuried(t *testing.T) {
	t.Parallel()
	const attempts = 3
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", MaxAttempts: attempts, Concurrency: 8,
		Lease: 3 * time.Second, Fallback: 300 * time.Millisecond,
	}
	q := newQueue(t, env, dueq.Options{})
	id := publish(t, q, "a", "die", time.Now())
	for n := range attempts {
		config.Name = fmt.Sprint("w", n)
		w := faultStart(t, config)
		_ = w.wait(t) // killed
	}
	config.Name = "last"
	last := faultStart(t, config)
	var info *dueq.EventInfo
	eventually(t, "the event is buried", func() bool {
		var err error
		if info, err = q.Get(t.Context(), "a", id); err != nil {
			t.Fatal(err)
		}
		return info.State == dueq.StateDead
	})
	if info.Attempts != attempts || info.LastError != readyqueue.LostCause || string(info.Body) != "die" {
		t.Errorf("buried as %+v", info)
	}
	other := publish(t, q, "a", "work", time.Now())
	eventually(t, "another event is handled", func() bool {
		s, err := q.Stats(t.Context(), "a")
		return err == nil && s.Acked == 1
	})
	runs := config.faultRuns(t, env.Client)
	if len(runs) != attempts+1 || runs[attempts] != (faultRun{ID: other, Worker: "last", Attempt: 1}) {
		t.Errorf("runs = %+v, want %d of the first event and one of the other", runs, attempts)
	}
	for i, r := range runs[:attempts] {
		if r.Attempt != i+1 || r.ID != id {
			t.Errorf("run %d = %+v", i, r)
		}
	}
	conserved(t, env, "a")
	last.signal(syscall.SIGTERM)
	if err := last.wait(t); err != nil {
		t.Error(err)
	}
}

// Two processes race for the events of one topic: nothing happens twice.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	const n = 3000
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", Concurrency: 8,
		Lease: holds, Pause: time.Millisecond, Timeout: holds,
	}
	var workers []*faultWorker
	for _, config.Name = range []string{"w0", "w1"} {
		workers = append(workers, faultStart(t, config))
	}
	eventually(t, "both workers are up", func() bool { return env.Client.LLen(t.Context(), config.up()).Val() == 2 })
	q := newQueue(t, env, dueq.Options{})
	ids, err := q.PublishEvents(t.Context(), "a", faultEvents(n, faultTime(t, env.Client), time.Second))
	if err != nil {
		t.Fatal(err)
	}
	faultEmpty(t, env)
	for _, w := range workers {
		w.signal(syscall.SIGTERM)
	}
	for _, w := range workers {
		if err := w.wait(t); err != nil {
			t.Error(w.name, err)
		}
	}
	runs := config.faultRuns(t, env.Client)
	if len(runs) != n {
		t.Errorf("%d runs of %d events", len(runs), n)
	}
	faultCheckRuns(t, runs, ids, nil)
	by := map[string]int{}
	for _, r := range runs {
		by[r.Worker]++
		if r.Attempt != 1 {
			t.Errorf("%+v: not the first attempt", r)
		}
	}
	if by["w0"] == 0 || by["w1"] == 0 {
		t.Errorf("runs by worker: %v", by)
	}
}

// The same within one process, on both kinds of server.
func TestTwoQueues(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 1000
		var mu sync.Mutex
		ran := map[string]int{}
		for range 2 {
			subscribe(t, newQueue(t, env, dueq.Options{Concurrency: 4}), "a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
				mu.Lock()
				defer mu.Unlock()
				ran[e.ID]++
				return nil
			}))
		}
		q := newQueue(t, env, dueq.Options{})
		ids, err := q.PublishEvents(t.Context(), "a", faultEvents(n, faultTime(t, env.Client), 500*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		faultEmpty(t, env)
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if ran[id] != 1 {
				t.Errorf("id %s ran %d times", id, ran[id])
			}
		}
	})
}

// Everything at once: workers are killed, stopped and shut down, connections
// cut, scripts forgotten, the server hangs, while events fail, are replaced,
// cancelled and rescheduled. No event is ever in two places, early or lost.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 25
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", MaxAttempts: 1000, Concurrency: 16,
		Lease: 300 * time.Millisecond, Fallback: 500 * time.Millisecond, Pause: 30 * time.Millisecond, Timeout: 100 * time.Millisecond,
	}
	var workers []*faultWorker
	begun := 0
	begin := func() *faultWorker {
		begun++
		config.Name = fmt.Sprint("w", begun)
		return faultStart(t, config)
	}
	for range 3 {
		workers = append(workers, begin())
	}
	q := newQueue(t, env, dueq.Options{})
	var ids []string // of events that nobody replaces or cancels
	for range rounds {
		ids = append(ids, faultMixed(t, q)...)
		at := time.Now().Add(rand.N(100 * time.Millisecond))
		_ = q.Cancel(t.Context(), "a", fmt.Sprint("key", rand.IntN(20)))
		_ = q.Reschedule(t.Context(), "a", fmt.Sprint("key", rand.IntN(20)), at)
		switch i := rand.IntN(len(workers)); rand.IntN(8) {
		case 0:
			workers[i].kill()
			workers[i] = begin()
		case 1:
			workers[i].signal(syscall.SIGTERM)
			_ = workers[i].wait(t) // its handlers may have been cut off
			workers[i] = begin()
		case 2:
			workers[i].signal(syscall.SIGSTOP)
			<-time.After(rand.N(2 * config.Lease))
			workers[i].signal(syscall.SIGCONT)
		case 3:
			faultCut(t, env.Client, []string{"normal", "pubsub"}[rand.IntN(2)])
		case 4:
			env.Client.ScriptFlush(t.Context())
		case 5:
			thaw := faultFreeze(t, env.NewClient())
			<-time.After(rand.N(config.Lease))
			thaw()
		}
		conserved(t, env, "a")
	}
	eventually(t, "the topic is empty", func() bool {
		s, err := q.Stats(t.Context(), "a")
		return err == nil && s.Scheduled+s.Ready+s.Leased == 0
	})
	conserved(t, env, "a")
	ran := map[string]bool{}
	for _, r := range config.faultRuns(t, env.Client) {
		ran[r.ID] = true
		if r.Early > 0 {
			t.Errorf("%+v: early", r)
		}
	}
	for _, id := range ids {
		if !ran[id] {
			t.Errorf("id %s never ran", id)
		}
	}
	t.Logf("%d events and 20 keys, %d workers: %+v", len(ids), begun, stats(t, q, "a"))
}

// faultMixed publishes some events of all kinds, and returns the ids of those
// that were stored and whose id is their own.
func faultMixed(t *testing.T, q *dueq.Queue) (ids []string) {
	t.Helper()
	events := faultEvents(rand.IntN(100), time.Now(), 500*time.Millisecond)
	for i := range events {
		events[i].Body = []byte([]string{"work", "1", "2"}[rand.IntN(3)]) // how many attempts fail
		if rand.IntN(3) == 0 {
			events[i].ID = fmt.Sprint("key", rand.IntN(20))
			events[i].KeyPolicy = []dueq.KeyPolicy{dueq.KeyKeep, dueq.KeyReplace}[rand.IntN(2)]
		}
	}
	stored, err := q.PublishEvents(t.Context(), "a", events)
	if err != nil && !errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Error(err)
	}
	for i, id := range stored {
		if id != "" && events[i].ID == "" {
			ids = append(ids, id)
		}
	}
	return ids
}
