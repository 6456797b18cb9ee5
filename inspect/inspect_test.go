package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// lay puts events where they can lie.
func lay(t *testing.T, env *redistest.Env, l *key.Lane, now time.Time) {
	t.Helper()
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, id := range []string{"scheduled", "due", "ready", "held", "lost", "dead"} {
			p.HSet(t.Context(), l.Pool, id, fmt.Sprintf("{\"v\":1,\"at\":%d}\n%s", now.Add(-time.Minute).UnixMilli(), id))
		}
		p.ZAdd(t.Context(), l.Bucket(l.Home("scheduled")), redis.Z{Score: float64(now.Add(time.Hour).UnixMilli()), Member: "scheduled"})
		p.ZAdd(t.Context(), l.Bucket(l.Home("due")), redis.Z{Score: float64(now.Add(-time.Hour).UnixMilli()), Member: "due"})
		p.RPush(t.Context(), l.Ready, "ready")
		p.SAdd(t.Context(), l.Held("alive"), "held")
		p.SAdd(t.Context(), l.Held("dead"), "lost")
		p.ZAdd(t.Context(), l.Sessions,
			redis.Z{Score: float64(now.Add(time.Hour).UnixMilli()), Member: "alive"}, redis.Z{Score: 1, Member: "dead"})
		p.ZAdd(t.Context(), l.Dead, redis.Z{Score: float64(now.UnixMilli()), Member: "dead"})
		p.HSet(t.Context(), l.Attempts, "dead", "3||why")
		p.HSet(t.Context(), l.Stats, "published", 6, "acked", 17)
		p.HSet(t.Context(), l.Meta, "buckets", "50")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInspect(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		other := key.NewLane(env.Namespace, "a", 0, 1, 50)
		now := time.Now()
		lay(t, env, other, now)
		l := key.NewLane(env.Namespace, "a", 0, 1, 7) // learns of the 50 by itself
		for id, want := range map[string]struct {
			state    string
			at       time.Time
			attempts string
		}{
			"none":      {},
			"scheduled": {"scheduled", now.Add(time.Hour), ""},
			"due":       {"scheduled", now.Add(-time.Hour), ""},
			"ready":     {"ready", time.Time{}, ""},
			"held":      {"leased", time.Time{}, ""},
			"lost":      {"leased", time.Time{}, ""},
			"dead":      {"dead", now, "3||why"},
		} {
			got, err := inspect.Get(t.Context(), env.Client, l, id)
			if err != nil {
				t.Fatal(err)
			}
			at := int64(0)
			if !want.at.IsZero() {
				at = want.at.UnixMilli()
			}
			if got.State != want.state || got.At != at || got.Attempts != want.attempts || (got.Record == "") != (id == "none") {
				t.Errorf("%s: %+v, want %+v", id, got, want)
			}
		}
		got, err := inspect.Count(t.Context(), env.Client, l)
		if err != nil {
			t.Fatal(err)
		}
		if got.Scheduled != 2 || got.Ready != 2 || got.Leased != 1 || got.Dead != 1 ||
			got.OldestDue != now.Add(-time.Hour).UnixMilli() || got.Counters["published"] != 6 || got.Counters["acked"] != 17 || got.Paused {
			t.Errorf("counts %+v", got)
		}
		if time.UnixMilli(got.Now).Sub(now).Abs() > time.Minute {
			t.Errorf("the server's clock shows %v", time.UnixMilli(got.Now))
		}
		if err := env.Client.HSet(t.Context(), l.Meta, "paused", "1").Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := inspect.Count(t.Context(), env.Client, l); err != nil || !got.Paused || got.Ready != 2 {
			t.Errorf("paused: counts %+v, %v", got, err)
		}
		keys, err := env.Client.Keys(t.Context(), l.Tag+"*").Result()
		if err != nil || len(keys) != 11 {
			t.Errorf("looking has left %q, %v", keys, err)
		}
	})
}

func TestInspectNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := key.NewLane(env.Namespace, "a", 0, 1, 1024)
		got, err := inspect.Count(t.Context(), env.Client, l)
		if err != nil || got.Scheduled+got.Ready+got.Leased+got.Dead+got.OldestDue != 0 || len(got.Counters) != 0 {
			t.Errorf("counts %+v, %v", got, err)
		}
		if keys := env.Client.Keys(t.Context(), l.Tag+"*").Val(); len(keys) != 0 {
			t.Errorf("looking has left %q", keys)
		}
	})
}

// An unreadable record at the head of ready does not hide the other numbers.
func TestCountUnreadable(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := key.NewLane(env.Namespace, "a", 0, 1, 4)
		if err := env.Client.RPush(t.Context(), l.Ready, "bad", "missing").Err(); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.HSet(t.Context(), l.Pool, "bad", "?").Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := inspect.Count(t.Context(), env.Client, l)
			if err != nil || got.Ready == 0 || got.OldestDue != 0 {
				t.Errorf("counts %+v, %v", got, err)
			}
			if err := env.Client.LPop(t.Context(), l.Ready).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A listing that cannot learn one lane's bucket counts says so, also if another
// lane has none.
func TestListWithoutCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lanes := []*key.Lane{key.NewLane(env.Namespace, "a", 0, 2, 1), key.NewLane(env.Namespace, "a", 1, 2, 1)}
		if err := env.Client.Set(t.Context(), lanes[1].Meta, "no hash", 0).Err(); err != nil {
			t.Fatal(err)
		}
		found, _, err := inspect.Listing{State: "scheduled", Lanes: lanes, Limit: 10}.Run(t.Context(), env.Client)
		if err == nil {
			t.Errorf("listed %v, as if there were no other buckets", found)
		}
	})
}
