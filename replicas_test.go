package dueq_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// replicated publishes an event of topic a until a replica has it in time.
func replicated(t *testing.T, q *dueq.Queue, due time.Time, opts ...dueq.PublishOption) (id string) {
	t.Helper()
	eventually(t, "a publish that a replica has", func() bool {
		var err error
		id, err = q.PublishEvent(t.Context(), "a", []byte("x"), due, opts...)
		if err != nil && !errors.Is(err, dueq.ErrNotReplicated) {
			t.Fatalf("publish: %v", err)
		}
		return err == nil
	})
	return id
}

// A publish that asks for a replica returns nil only once the replica has the
// event, and otherwise says that it has not.
func TestReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := master.StartReplica()
	env, copied := master.Env(), replica.Client()
	q := newQueue(t, env, dueq.Options{Replicas: 1})
	pool := faultLane(env.Namespace).Pool
	has := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if ok, err := copied.HExists(t.Context(), pool, id).Result(); !ok || err != nil {
				t.Errorf("the replica has not got id %q: %v", id, err)
			}
		}
	}
	hour := time.Now().Add(time.Hour)
	for range 20 {
		has(replicated(t, q, hour))
		has(replicated(t, q, time.Now()))
	}
	again := dueq.WithKeyPolicy(dueq.KeyKeep)
	has(replicated(t, q, hour, dueq.WithID("mine"), again))
	if _, err := q.PublishEvent(t.Context(), "a", nil, hour, dueq.WithID("mine")); !errors.Is(err, dueq.ErrDuplicateID) || errors.Is(err, dueq.ErrNotReplicated) {
		t.Errorf("publish of a key that exists = %v", err)
	}
	eventually(t, "many that a replica has", func() bool {
		ids, err := q.PublishEvents(t.Context(), "a", faultEvents(1200, hour, time.Hour))
		if err == nil {
			has(ids...)
		} else if !errors.Is(err, dueq.ErrNotReplicated) {
			t.Fatal(err)
		}
		return err == nil
	})

	thaw := faultFreeze(t, copied)
	if id, err := q.PublishEvent(t.Context(), "a", nil, hour, dueq.WithID("kept")); id != "kept" || !errors.Is(err, dueq.ErrNotReplicated) {
		t.Errorf("publish without a replica = %q, %v", id, err)
	}
	if _, err := q.PublishEvent(t.Context(), "a", nil, hour, dueq.WithID("kept"), again); !errors.Is(err, dueq.ErrNotReplicated) {
		t.Errorf("another = %v: it is there, but the replica has not got it", err)
	}
	get(t, q, "a", "kept")
	thaw()
	eventually(t, "the replica is back", func() bool {
		_, err := q.PublishEvent(t.Context(), "a", nil, hour, dueq.WithID("kept"), again)
		return err == nil
	})
	has("kept")
}

// Without any replica the events exist, and their publishes fail.
func TestNoReplica(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Replicas: 1})
		st := newStage(t)
		subscribe(t, q, "a", st)
		for _, due := range []time.Time{time.Now(), time.Now().Add(100 * time.Millisecond), time.Now().Add(time.Hour)} {
			id, err := q.PublishEvent(t.Context(), "a", []byte("x"), due)
			if !errors.Is(err, dueq.ErrNotReplicated) || errors.Is(err, dueq.ErrOutcomeUnknown) {
				t.Errorf("PublishEvent = %v", err)
			}
			if time.Until(due) > time.Minute {
				get(t, q, "a", id)
				continue
			}
			a := st.next()
			a.want(t, id, "x", 1)
			a.end(nil)
		}
		mixed := []dueq.NewEvent{
			{ID: "mine", EffectTime: time.Now().Add(time.Hour)},
			{ID: "mine", EffectTime: time.Now().Add(time.Hour)},
			{EffectTime: time.Now().Add(time.Hour)},
		}
		ids, err := q.PublishEvents(t.Context(), "a", mixed)
		var failed *dueq.BatchError
		if !errors.As(err, &failed) || failed.Stored != 0 || len(failed.Errs) != 3 || !errors.Is(failed.Errs[1], dueq.ErrDuplicateID) ||
			!errors.Is(failed.Errs[0], dueq.ErrNotReplicated) || !errors.Is(failed.Errs[2], dueq.ErrNotReplicated) {
			t.Fatalf("PublishEvents = %v", err)
		}
		if text := "of 3 events 0 were stored, 2 on too few replicas, 1 were not, of 0 it is unknown"; !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q", err, text)
		}
		if ids[0] != "mine" || ids[1] != "" || ids[2] == "" {
			t.Errorf("ids %q", ids)
		}
		get(t, q, "a", ids[2])
		if s := stats(t, q, "a"); s.Scheduled != 3 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// On a cluster each event's own master waits.
func TestReplicasOfCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	opts := dueq.Options{Partitions: 4, Replicas: 1}
	hour := time.Now().Add(time.Hour)
	q := clusterQueue(t, cluster, opts)
	if ids, err := q.PublishEvents(t.Context(), "a", faultEvents(100, hour, time.Hour)); !errors.Is(err, dueq.ErrNotReplicated) || slices.Contains(ids, "") {
		t.Errorf("PublishEvents without replicas: %v", err)
	}
	cluster.AddReplicas()
	eventually(t, "all masters have replicas", func() bool {
		_, err := q.PublishEvents(t.Context(), "a", faultEvents(100, hour, time.Hour))
		return err == nil
	})
	replicated(t, q, past(), dueq.WithID("now"), dueq.WithKeyPolicy(dueq.KeyKeep))
	if s := stats(t, q, "a"); s.Scheduled < 200 || s.Ready != 1 {
		t.Errorf("Stats = %+v", s)
	}
}

func TestReplicasOption(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	one := redistest.Mini(t).NewClient()
	for _, c := range []struct {
		rdb      redis.UniversalClient
		replicas int
		ok       bool
	}{
		{one, -1, false}, {one, 0, true}, {one, 16, true}, {one, 17, false}, {ring, 0, true}, {ring, 1, false},
	} {
		q, err := dueq.New(c.rdb, dueq.Options{Replicas: c.replicas})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, dueq.ErrOptionsInvalid) {
			t.Errorf("Replicas %d on a %T: %v", c.replicas, c.rdb, err)
		}
		if q != nil {
			shutDown(t, q)
		}
	}
}
