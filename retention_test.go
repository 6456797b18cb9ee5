package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// A queue that subscribes drops the dead events that are too old or too many,
// and says so.
func TestRetention(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		first := newQueue(t, env, dueq.Options{DeadLimit: 1}) // that looks in hours, not now
		subscribe(t, first, topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return dueq.SkipRetry(errBroken) }))
		now := time.Now()
		for i := range 6 {
			id := fmt.Sprint("died ", 6-i, " days ago")
			publish(t, first, topic, "x", past(), dueq.WithID(id))
			awaitState(t, first, topic, id, dueq.StateDead)
			died := now.AddDate(0, 0, i-6).UnixMilli()
			if err := env.Client.ZAdd(t.Context(), lane.Dead, redis.Z{Score: float64(died), Member: id}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		shutDown(t, first)

		core, logs := observer.New(zapcore.WarnLevel)
		q := newQueue(t, env, dueq.Options{
			DeadRetention: 100 * time.Hour, DeadLimit: 3, Fallback: 100 * time.Millisecond, Logger: zap.New(core),
		})
		st := newStage(t)
		subscribe(t, q, topic, st)
		eventually(t, "three are dropped", func() bool { return stats(t, q, topic).Dropped == 3 })
		for i := range 6 {
			id := fmt.Sprint("died ", 6-i, " days ago")
			if _, err := q.Get(t.Context(), topic, id); (err == nil) != (i >= 3) || err != nil && !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if s := stats(t, q, topic); s.Dead != 3 || s.Buried != 6 {
			t.Errorf("stats %+v", s)
		}
		conserved(t, env, topic)
		dropped := logs.FilterMessage("dead events were dropped").All
		eventually(t, "the log says so", func() bool { return len(dropped()) == 1 })
		if f := dropped()[0].ContextMap(); f["topic"] != topic || f["too_old"] != int64(2) || f["too_many"] != int64(1) {
			t.Errorf("logged %v", f)
		}
		publish(t, q, topic, "anew", past(), dueq.WithID("died 6 days ago")) // its key is free
		st.next().end(nil)
	})
}

// On a cluster each lane is trimmed and purged where it lies.
func TestRetentionOnCluster(t *testing.T) {
	t.Parallel()
	const n = 40
	q := clusterQueue(t, redistest.StartCluster(t, 3), dueq.Options{Partitions: 4, DeadLimit: 1, Fallback: 100 * time.Millisecond})
	subscribe(t, q, topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return dueq.SkipRetry(errBroken) }))
	publishMany(t, q, n, past())
	eventually(t, "one is left in each lane", func() bool {
		s := stats(t, q, topic)
		return s.Buried == n && s.Dead == 4 && s.Dropped == n-4
	})
	publishMany(t, q, n, time.Now().Add(time.Hour))
	purge(t, q, n+4)
}
