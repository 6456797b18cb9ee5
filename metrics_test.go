package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// What a process does is counted, by topic and by what became of it.
func TestMetrics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		ctx := t.Context()
		q := newQueue(t, env, dueq.Options{
			MaxAttempts: 2, Backoff: func(int, error) time.Duration { return 0 },
			PersistFn: func(_ context.Context, e *dueq.Event, _ error) error {
				if e.ID == "stored" {
					return nil
				}
				return errBroken
			},
		})
		far := time.Now().Add(time.Hour)
		publish(t, q, "a", "", far, dueq.WithID("keyed"))
		for _, p := range []dueq.KeyPolicy{dueq.KeyReject, dueq.KeyKeep, dueq.KeyReplace, dueq.KeyReplace} {
			_, err := q.PublishEvent(ctx, "a", nil, far, dueq.WithID("keyed"), dueq.WithKeyPolicy(p))
			if errors.Is(err, dueq.ErrDuplicateID) != (p == dueq.KeyReject) {
				t.Fatalf("policy %v: %v", p, err)
			}
		}
		ids, err := q.PublishEvents(ctx, "a", []dueq.NewEvent{{EffectTime: far}, {EffectTime: far}, {EffectTime: far}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(q.Cancel(ctx, "a", ids[0]), q.Reschedule(ctx, "a", ids[1], far)); err != nil {
			t.Fatal(err)
		}
		if err := q.Cancel(ctx, "a", "unknown"); !errors.Is(err, dueq.ErrNotFound) {
			t.Fatal(err)
		}
		if n, err := q.Purge(ctx, "a"); n != 3 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		for _, id := range []string{"fine", "stored", "buried"} {
			publish(t, q, "a", "", time.Now(), dueq.WithID(id))
		}
		subscribe(t, q, "a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			if e.ID == "fine" {
				return nil
			}
			return errBroken
		}))
		subscribe(t, q, "idle", newStage(t))
		var m dueq.Metrics
		eventually(t, "all settled", func() bool {
			m = q.Metrics()
			a := m.Topics["a"]
			return a.Acked+a.Persisted+a.Buried == 3
		})
		a := m.Topics["a"]
		if a.Ready.Count() != 3 || a.Lateness.Count() != 3 || a.Handling.Count() != 5 || a.Lateness.Sum < a.Ready.Sum {
			t.Errorf("%d ready, %d first deliveries, %d deliveries, late %v of %v", a.Ready.Count(), a.Lateness.Count(), a.Handling.Count(), a.Ready.Sum, a.Lateness.Sum)
		}
		a.Ready, a.Lateness, a.Handling = dueq.Histogram{}, dueq.Histogram{}, dueq.Histogram{}
		if want := (dueq.TopicMetrics{
			Published: 9, Kept: 1, Replaced: 2, Duplicates: 1, Delivered: 5, Acked: 1, Persisted: 1, Retried: 2, Buried: 1,
			Cancelled: 4, Rescheduled: 1,
		}); a != want {
			t.Errorf("counted %+v, want %+v", a, want)
		}
		if m.Topics["idle"] != (dueq.TopicMetrics{}) || len(m.Topics) != 2 {
			t.Errorf("topics %v", m.Topics)
		}
		if m.PublishBatches.Sum != 11 || m.PublishBatches.Count() != 9 || m.SettleBatches.Sum != 5 {
			t.Errorf("batches of publishes %+v, of settlements %+v", m.PublishBatches, m.SettleBatches)
		}
		for _, call := range []string{"publish", "claim", "settle", "move", "purge"} {
			if c := m.Calls[call]; c.Took.Count() == 0 || c.Failed != 0 {
				t.Errorf("calls of %s: %+v", call, c)
			}
		}
	})
}

// What a topic is only asked about is not counted.
func TestMetricsOfAStranger(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q := newQueue(t, env, dueq.Options{})
	stats(t, q, "asked")
	if m := q.Metrics(); len(m.Topics) != 0 {
		t.Errorf("topics %v", m.Topics)
	}
}

// A process tells others how late its deliveries were, at the latest when it
// shuts down.
func TestLatenessIsShared(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		operator := newQueue(t, env, dueq.Options{})
		const late = 3 * time.Second
		var total dueq.Histogram
		for _, partitions := range []int{1, 3} {
			q := newQueue(t, env, dueq.Options{Partitions: partitions})
			for range 4 {
				publish(t, q, "a", "", time.Now().Add(-late))
			}
			ran := make(seen, 10)
			subscribe(t, q, "a", ran)
			for range 4 {
				receive(t, ran)
			}
			shutDown(t, q)
			own := q.Metrics().Topics["a"].Lateness
			for i, n := range own.Counts {
				total.Counts[i] += n
			}
			total.Sum += own.Sum
		}
		got := stats(t, operator, "a").Lateness
		if got.Counts != total.Counts || got.Count() != 8 {
			t.Errorf("shared %v, counted %v", got.Counts, total.Counts)
		}
		if d := total.Sum - got.Sum; d < 0 || d > 2*time.Millisecond || got.Sum < 8*late {
			t.Errorf("shared a sum of %v, counted %v", got.Sum, total.Sum)
		}
		if p := got.Quantile(0.5); p < 2*time.Second {
			t.Errorf("p50 of events that were %v late when they were published is %v", late, p)
		}
	})
}

func ExampleQueue_Metrics() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	for range 2 {
		_, err := q.PublishEvent(ctx, "count", nil, time.Now().Add(time.Minute), dueq.WithID("page 7"), dueq.WithKeyPolicy(dueq.KeyKeep))
		if err != nil {
			fmt.Println(err)
		}
	}
	m := q.Metrics().Topics["count"]
	fmt.Println(m.Published, "published,", m.Kept, "kept")
	// Output: 1 published, 1 kept
}

// What a process tells of its lateness is counted once, though Redis refuses it
// at first and then does not answer.
func TestLatenessIsSharedOnce(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	rdb := env.NewClient()
	var tries atomic.Int32
	rdb.AddHook(&hook{pipeline: func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
		if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return strings.Contains(cmd.String(), " late:") }) {
			return next(ctx, cmds)
		}
		var err error
		switch tries.Add(1) {
		case 1:
			err = refusal("OOM")
		case 2:
			err = errors.Join(next(ctx, cmds), io.EOF)
		default:
			return next(ctx, cmds)
		}
		return fail(cmds, err)
	}})
	q, operator := newQueueOn(t, env, rdb, dueq.Options{}), newQueue(t, env, dueq.Options{})
	publish(t, q, "a", "", time.Now())
	ran := make(seen, 1)
	subscribe(t, q, "a", ran)
	receive(t, ran)
	eventually(t, "lateness shared by a process that runs", func() bool { return stats(t, operator, "a").Lateness.Count() > 0 })
	shutDown(t, q)
	if n := stats(t, operator, "a").Lateness.Count(); n != 1 || tries.Load() != 2 {
		t.Errorf("%d deliveries are shared after %d tries, want one after two", n, tries.Load())
	}
}
