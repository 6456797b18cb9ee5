package inspect_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// find checks lanes, in the order of kinds and ids.
func find(t *testing.T, env *redistest.Env, mend bool, lanes ...*key.Lane) []inspect.Finding {
	t.Helper()
	var findings []inspect.Finding
	err := inspect.Check(t.Context(), env.Client, lanes, mend, func(f inspect.Finding) {
		slices.Sort(f.Keys)
		findings = append(findings, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(findings, func(a, b inspect.Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return findings
}

// snapshot is all that the namespace's lanes hold.
func snapshot(t *testing.T, env *redistest.Env) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, name := range env.Client.Keys(t.Context(), "{"+env.Namespace+":*").Val() {
		var content any
		switch env.Client.Type(t.Context(), name).Val() {
		case "hash":
			content = env.Client.HGetAll(t.Context(), name).Val()
		case "zset":
			content = env.Client.ZRangeWithScores(t.Context(), name, 0, -1).Val()
		case "list":
			content = env.Client.LRange(t.Context(), name, 0, -1).Val()
		case "set":
			members := env.Client.SMembers(t.Context(), name).Val()
			slices.Sort(members)
			content = members
		}
		all[name] = fmt.Sprint(content)
	}
	return all
}

// breach is something that another hand does to a healthy lane, and what becomes
// of it.
type breach struct {
	do    func(ctx context.Context, p redis.Pipeliner, l *key.Lane)
	kind  inspect.Kind
	id    string
	keys  func(l *key.Lane) []string
	state string // after the repair
	more  func(t *testing.T, env *redistest.Env, l *key.Lane)
}

const anHour = 3_600_000

// stray is a bucket in which no count looks for the id.
func stray(l *key.Lane, id string) string { return l.Bucket((l.Home(id) + 1) % 50) }

func breaches() map[string]breach {
	z := func(score float64, id string) redis.Z { return redis.Z{Score: score, Member: id} }
	keys := func(names ...func(*key.Lane) string) func(*key.Lane) []string {
		return func(l *key.Lane) []string {
			var all []string
			for _, name := range names {
				all = append(all, name(l))
			}
			slices.Sort(all)
			return all
		}
	}
	pool := func(l *key.Lane) string { return l.Pool }
	ready := func(l *key.Lane) string { return l.Ready }
	dead := func(l *key.Lane) string { return l.Dead }
	alive := func(l *key.Lane) string { return l.Held("alive") }
	expired := func(l *key.Lane) string { return l.Held("dead") }
	home := func(id string) func(*key.Lane) string {
		return func(l *key.Lane) string { return l.Bucket(l.Home(id)) }
	}
	attempts := func(id, want string) func(*testing.T, *redistest.Env, *key.Lane) {
		return func(t *testing.T, env *redistest.Env, l *key.Lane) {
			if got := env.Client.HGet(t.Context(), l.Attempts, id).Val(); got != want {
				t.Errorf("attempts entry %q, want %q", got, want)
			}
		}
	}
	scored := func(name func(*key.Lane) string, id string, want float64) func(*testing.T, *redistest.Env, *key.Lane) {
		return func(t *testing.T, env *redistest.Env, l *key.Lane) {
			if got := env.Client.ZScore(t.Context(), name(l), id).Val(); got != want {
				t.Errorf("score %v, want %v", got, want)
			}
		}
	}
	sessions := func(l *key.Lane) string { return l.Sessions }

	return map[string]breach{
		"body alone": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.HSet(ctx, l.Pool, "orphan", "{\"v\":1,\"at\":1}\nbody")
			},
			kind: inspect.NoPlace, id: "orphan", keys: keys(pool), state: "dead",
			more: attempts("orphan", "0||"+inspect.PlacelessCause),
		},
		"unreadable body alone": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.HSet(ctx, l.Pool, "orphan", "?") },
			kind: inspect.NoPlace, id: "orphan", keys: keys(pool), state: "dead",
		},
		"body alone, after attempts": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.SRem(ctx, l.Held("alive"), "held")
				p.HSet(ctx, l.Attempts, "held", "3|5|why")
				p.HSet(ctx, l.Again, "held", "keep:1:1")
			},
			kind: inspect.NoPlace, id: "held", keys: keys(pool), state: "dead",
			more: attempts("held", "3|5|"+inspect.PlacelessCause),
		},
		"no body, scheduled": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.HDel(ctx, l.Pool, "scheduled") },
			kind: inspect.NoBody, id: "scheduled", keys: keys(home("scheduled")),
		},
		"no body, ready twice": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.HDel(ctx, l.Pool, "ready")
				p.RPush(ctx, l.Ready, "ready")
			},
			kind: inspect.NoBody, id: "ready", keys: keys(ready, ready),
		},
		"no body, held": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.HDel(ctx, l.Pool, "held") },
			kind: inspect.NoBody, id: "held", keys: keys(alive),
		},
		"no body, dead": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.HDel(ctx, l.Pool, "dead")
				p.HDel(ctx, l.Attempts, "dead")
			},
			kind: inspect.NoBody, id: "dead", keys: keys(dead),
		},
		"no body, in many places": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.HDel(ctx, l.Pool, "ready")
				p.ZAdd(ctx, stray(l, "ready"), z(1, "ready"))
				p.ZAdd(ctx, l.Dead, z(1, "ready"))
				p.SAdd(ctx, l.Held("alive"), "ready")
			},
			kind: inspect.NoBody, id: "ready",
			keys: keys(ready, dead, alive, func(l *key.Lane) string { return stray(l, "ready") }),
		},
		"ready twice": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.RPush(ctx, l.Ready, "ready", "ready") },
			kind: inspect.TwoPlaces, id: "ready", keys: keys(ready, ready), state: "ready",
		},
		"held and ready": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.RPush(ctx, l.Ready, "held", "held") },
			kind: inspect.TwoPlaces, id: "held", keys: keys(alive, ready, ready), state: "leased",
		},
		"held by two": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.SAdd(ctx, l.Held("dead"), "held") },
			kind: inspect.TwoPlaces, id: "held", keys: keys(alive, expired), state: "leased",
			more: func(t *testing.T, env *redistest.Env, l *key.Lane) {
				if !env.Client.SIsMember(t.Context(), l.Held("alive"), "held").Val() {
					t.Error("the session that lives has lost its event")
				}
			},
		},
		"ready and scheduled": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.ZAdd(ctx, l.Bucket(l.Home("ready")), z(anHour, "ready"))
			},
			kind: inspect.TwoPlaces, id: "ready", keys: keys(ready, home("ready")), state: "ready",
		},
		"scheduled and dead": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.ZAdd(ctx, l.Dead, z(1, "scheduled")) },
			kind: inspect.TwoPlaces, id: "scheduled", keys: keys(dead, home("scheduled")), state: "scheduled",
		},
		"dead and given back": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.ZAdd(ctx, l.Dead, z(1, "lost")) },
			kind: inspect.TwoPlaces, id: "lost", keys: keys(dead, expired), state: "dead",
		},
		"scheduled twice": { // the later time is the right one
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.HSet(ctx, l.Meta, "buckets", "5,50")
				p.HSet(ctx, l.Pool, "both", "{\"v\":1,\"at\":1}\n")
				p.ZAdd(ctx, l.Bucket(l.Home("both")), z(anHour, "both"))
				p.ZAdd(ctx, l.Bucket(key.Shard("both", 5)), z(2*anHour, "both"))
			},
			kind: inspect.TwoPlaces, id: "both", state: "scheduled",
			keys: keys(home("both"), func(l *key.Lane) string { return l.Bucket(key.Shard("both", 5)) }),
			more: scored(func(l *key.Lane) string { return l.Bucket(key.Shard("both", 5)) }, "both", 2*anHour),
		},
		"wrong bucket": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.ZRem(ctx, l.Bucket(l.Home("due")), "due")
				p.ZAdd(ctx, stray(l, "due"), z(anHour, "due"))
			},
			kind: inspect.WrongBucket, id: "due", state: "scheduled",
			keys: keys(func(l *key.Lane) string { return stray(l, "due") }),
			more: scored(home("due"), "due", anHour),
		},
		"bucket of no count": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.ZRem(ctx, l.Bucket(l.Home("due")), "due")
				p.ZAdd(ctx, l.Bucket(5000), z(anHour, "due"))
			},
			kind: inspect.WrongBucket, id: "due", state: "scheduled",
			keys: keys(func(l *key.Lane) string { return l.Bucket(5000) }),
			more: scored(home("due"), "due", anHour),
		},
		"no session": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.SRem(ctx, l.Held("alive"), "held")
				p.SAdd(ctx, l.Held("gone"), "held")
			},
			kind: inspect.NoSession, id: "held", state: "leased",
			keys: keys(func(l *key.Lane) string { return l.Held("gone") }),
			more: scored(sessions, "gone", 1),
		},
		"no session to expire": {
			do: func(ctx context.Context, p redis.Pipeliner, l *key.Lane) {
				p.SRem(ctx, l.Held("alive"), "held")
				p.SAdd(ctx, l.Held("!gone"), "held")
			},
			kind: inspect.NoSession, id: "held", state: "leased",
			keys: keys(func(l *key.Lane) string { return l.Held("!gone") }),
			more: scored(sessions, "!gone", 1),
		},
		"attempts left over": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.HSet(ctx, l.Attempts, "gone", "1||why") },
			kind: inspect.Leftover, id: "gone", keys: keys(func(l *key.Lane) string { return l.Attempts }),
		},
		"mark left over": {
			do:   func(ctx context.Context, p redis.Pipeliner, l *key.Lane) { p.HSet(ctx, l.Again, "gone", "keep:1:1") },
			kind: inspect.Leftover, id: "gone", keys: keys(func(l *key.Lane) string { return l.Again }),
		},
	}
}

func TestCheckAndMend(t *testing.T) {
	for name, b := range breaches() {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) { b.test(t, env) })
		})
	}
}

func (b breach) test(t *testing.T, env *redistest.Env) {
	l := key.NewLane(env.Namespace, "a*[b]?\\", 0, 1, 50)
	named := func() *key.Lane { return key.NewLane(env.Namespace, l.Topic, 0, 1, 7) } // the 50 it learns
	lay(t, env, l, time.Now())
	if findings := find(t, env, true, named()); len(findings) > 0 {
		t.Fatalf("a healthy lane: %+v", findings)
	}
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		b.do(t.Context(), p, l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	broken := snapshot(t, env)
	want := inspect.Finding{Kind: b.kind, ID: b.id, Keys: b.keys(l)}
	for _, mend := range []bool{false, true} {
		if !maps.Equal(snapshot(t, env), broken) {
			t.Error("a check has changed something")
		}
		got := find(t, env, mend, named())
		if len(got) != 1 || got[0].Kind != want.Kind || got[0].ID != want.ID || !slices.Equal(got[0].Keys, want.Keys) {
			t.Errorf("found %+v, want %+v", got, want)
		}
	}
	if left := find(t, env, false, named()); len(left) > 0 {
		t.Errorf("left after the repair: %+v", left)
	}
	place, err := inspect.Get(t.Context(), env.Client, named(), b.id)
	if err != nil || place.State != b.state {
		t.Errorf("after the repair it is %+v, %v; want state %q", place, err, b.state)
	}
	if b.more != nil {
		b.more(t, env, l)
	}
	counts, err := inspect.Count(t.Context(), env.Client, named())
	if err != nil || b.kind != inspect.NoSession && counts.Bodies != counts.Places() {
		t.Errorf("%d bodies in %d places, %v", counts.Bodies, counts.Places(), err)
	}
}

// Bucket counts that were forgotten are registered again before events go there.
func TestMendWithoutCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := key.NewLane(env.Namespace, "a", 0, 1, 50)
		lay(t, env, l, time.Now())
		if err := env.Client.Del(t.Context(), l.Meta).Err(); err != nil {
			t.Fatal(err)
		}
		for _, f := range find(t, env, true, key.NewLane(env.Namespace, "a", 0, 1, 7)) {
			if f.Kind != inspect.WrongBucket || f.ID != "due" && f.ID != "scheduled" {
				t.Errorf("found %+v", f)
			}
		}
		if counts := env.Client.HGet(t.Context(), l.Meta, "buckets").Val(); counts != "7" {
			t.Errorf("bucket counts %q", counts)
		}
		if left := find(t, env, false, key.NewLane(env.Namespace, "a", 0, 1, 7)); len(left) > 0 {
			t.Errorf("left after the repair: %+v", left)
		}
	})
}

// The walks take many steps, and lanes whose names begin alike are told apart.
func TestCheckMany(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lanes := make([]*key.Lane, 3)
		for i := range lanes {
			lanes[i] = key.NewLane(env.Namespace, "a", i, 3, 4)
		}
		other := key.NewLane(env.Namespace, "a2", 0, 1, 4)
		l := lanes[1]
		each := 1100
		if env.Mini != nil {
			each = 200 // one step: its cursors are offsets, which removals shift
		}
		if err := env.Client.HSet(t.Context(), l.Meta, "buckets", "4").Err(); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.SAdd(t.Context(), other.Held("x"), "x").Err(); err != nil {
			t.Fatal(err)
		}
		put := func(p redis.Pipeliner, i int) {
			body := func(id string) string {
				p.HSet(t.Context(), l.Pool, id, "{\"v\":1,\"at\":1}\n")
				return id
			}
			id := body(fmt.Sprint("scheduled", i))
			p.ZAdd(t.Context(), l.Bucket(l.Home(id)), redis.Z{Score: 1, Member: id})
			p.RPush(t.Context(), l.Ready, body(fmt.Sprint("ready", i)))
			p.SAdd(t.Context(), l.Held("gone"), body(fmt.Sprint("held", i)))
			p.ZAdd(t.Context(), l.Dead, redis.Z{Score: 1, Member: body(fmt.Sprint("dead", i))})
			body(fmt.Sprint("orphan", i))
			p.ZAdd(t.Context(), l.Bucket(0), redis.Z{Score: 1, Member: fmt.Sprint("ghost", i)})
			p.HSet(t.Context(), l.Attempts, fmt.Sprint("attempts", i), "1||")
		}
		for i := range each { // not all at once: the client would send again what took too long
			_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				put(p, i)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, mend := range []bool{false, true} {
			counts := make(map[inspect.Kind]int)
			for _, f := range find(t, env, mend, lanes...) {
				counts[f.Kind]++
			}
			want := map[inspect.Kind]int{inspect.NoSession: each, inspect.NoPlace: each, inspect.NoBody: each, inspect.Leftover: each}
			if !maps.Equal(counts, want) {
				t.Errorf("found %v, want %v", counts, want)
			}
		}
		if left := find(t, env, false, lanes...); len(left) > 0 {
			t.Errorf("%d left after the repair, such as %+v", len(left), left[0])
		}
		if n := env.Client.HLen(t.Context(), l.Pool).Val(); n != int64(5*each) {
			t.Errorf("%d bodies, want %d", n, 5*each)
		}
		if n := env.Client.ZCard(t.Context(), l.Dead).Val(); n != int64(2*each) {
			t.Errorf("%d dead, want %d", n, 2*each)
		}
	})
}
