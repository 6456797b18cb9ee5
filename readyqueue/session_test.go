package readyqueue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

func TestExtend(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready("a", "b", "c")
		b.claim("me", 2, 0)
		before := b.rdb.ZScore(t.Context(), b.lane.Sessions, "me").Val()
		mine := &readyqueue.Session{Lane: b.lane, Name: "me", Lease: 10 * time.Hour}
		lost := &readyqueue.Session{Lane: b.lane, Name: "you", Lease: 10 * time.Hour}
		readyqueue.Extend(t.Context(), b.rdb, []*readyqueue.Session{mine, lost})
		if mine.Err != nil || mine.Held != 2 || !errors.Is(lost.Err, readyqueue.ErrLost) {
			t.Errorf("extended: %d, %v; %d, %v", mine.Held, mine.Err, lost.Held, lost.Err)
		}
		after := b.rdb.ZScore(t.Context(), b.lane.Sessions, "me").Val()
		if d := time.Duration(after-before) * time.Millisecond; d < 9*time.Hour-time.Minute || d > 9*time.Hour+time.Minute {
			t.Errorf("moved on by %v", d)
		}
		b.lies(map[string][]string{b.lane.Sessions: {"me"}})
		held, err := readyqueue.HeldIDs(t.Context(), b.rdb, b.lane, "me")
		if slices.Sort(held); err != nil || !slices.Equal(held, []string{"a", "b"}) {
			t.Errorf("held %q, %v", held, err)
		}
	})
}

// What a session holds is not forgotten when some other hand has removed the
// session: once it learns of that, its events go the way of a dead session's.
func TestSessionRemovedByHand(t *testing.T) {
	for name, learn := range map[string]func(b *bench) error{
		"extend": func(b *bench) error {
			me := &readyqueue.Session{Lane: b.lane, Name: "me", Lease: time.Hour}
			readyqueue.Extend(b.Context(), b.rdb, []*readyqueue.Session{me})
			return me.Err
		},
		"claim": func(b *bench) error {
			_, err := readyqueue.Claim{Session: "me", Lease: time.Hour, Holds: true, Limit: 1}.Run(b.Context(), b.rdb, b.lane)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				b := newBench(t, env, 1)
				b.ready("a")
				b.claim("me", 1)
				b.must(b.rdb.ZRem(t.Context(), b.lane.Sessions, "me").Err())
				if err := learn(b); !errors.Is(err, readyqueue.ErrLost) {
					t.Errorf("error %v, want ErrLost", err)
				}
				b.expire()
				b.lies(map[string][]string{b.lane.Ready: {"a"}, b.lane.Held("me"): nil})
			})
		})
	}
}

// A claim that is not asked to push the deadline on does so when there is none.
func TestClaimWithoutSession(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready("a")
		if _, err := (readyqueue.Claim{Session: "me", Lease: time.Hour, Limit: 1}).Run(t.Context(), b.rdb, b.lane); err != nil {
			t.Fatal(err)
		}
		b.lies(map[string][]string{b.lane.Held("me"): {"a"}, b.lane.Sessions: {"me"}})
	})
}

func TestExpire(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		if next := b.expire(); next != 0 {
			t.Errorf("next deadline %d of no session", next)
		}
		const n = 1203 // several batches
		all := numbered(n)
		b.ready(all...)
		for range 3 {
			b.claim("dead", 500, 0)
		}
		b.ready("mine")
		b.claim("alive", 1, 0)
		b.must(b.rdb.HSet(t.Context(), b.lane.Attempts, all[7], "4|5|before").Err())
		if next := b.expire(); next < time.Now().UnixMilli() { // nobody is past its deadline
			t.Errorf("next deadline %d", next)
		}
		b.lies(map[string][]string{b.lane.Ready: nil})

		b.lapse("dead")
		deadline := int64(b.rdb.ZScore(t.Context(), b.lane.Sessions, "alive").Val())
		if next := b.expire(); next != deadline {
			t.Errorf("next deadline %d, want %d", next, deadline)
		}
		got := b.rdb.LRange(t.Context(), b.lane.Ready, 0, -1).Val()
		if slices.Sort(got); !slices.Equal(got, all) {
			t.Errorf("%d are ready again, want %d", len(got), n)
		}
		b.lies(map[string][]string{
			b.lane.Sessions: {"alive"}, b.lane.Held("dead"): nil, b.lane.Held("!dead"): nil, b.lane.Held("alive"): {"mine"}, b.lane.Bell: {"1"},
		})
		if got, want := b.attempts(all[0]), "1||"+readyqueue.LostCause; got != want {
			t.Errorf("attempts %q, want %q", got, want)
		}
		if got, want := b.attempts(all[7]), "5|5|"+readyqueue.LostCause; got != want {
			t.Errorf("attempts %q, want %q", got, want)
		}
		if got := b.rdb.HGet(t.Context(), b.lane.Stats, "expired").Val(); got != fmt.Sprint(n) {
			t.Errorf("%s expired, want %d", got, n)
		}
		if err := b.settle("dead", readyqueue.Settlement{ID: all[0], Outcome: readyqueue.Ack}); !errors.Is(err, readyqueue.ErrLost) {
			t.Errorf("a late ack = %v, want ErrLost", err)
		}
	})
}

// An expiry that was broken off half way is finished by the next one, together
// with what the session has claimed since.
func TestExpireGoesOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready(numbered(20)...)
		b.claim("me", 10, 0)
		b.must(b.rdb.Rename(t.Context(), b.lane.Held("me"), b.lane.Held("!me")).Err())
		b.lapse("!me")
		b.must(b.rdb.ZRem(t.Context(), b.lane.Sessions, "me").Err())
		b.claim("me", 5, 0)
		b.lapse("me")
		b.expire()
		b.lies(map[string][]string{b.lane.Sessions: nil, b.lane.Held("me"): nil, b.lane.Held("!me"): nil})
		if n := b.rdb.LLen(t.Context(), b.lane.Ready).Val(); n != 20 {
			t.Errorf("%d ready, want 20", n)
		}
	})
}

// More dead sessions than are read at a time, some of them holding nothing.
func TestExpireManySessions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		const n = 50
		b.ready(numbered(n)...)
		for i := range n {
			session := fmt.Sprint("session ", i)
			b.claim(session, 1, 0)
			if i%3 == 0 {
				b.must(b.settle(session, readyqueue.Settlement{ID: fmt.Sprintf("%05d", i), Outcome: readyqueue.Ack}))
			}
			b.lapse(session)
		}
		if next := b.expire(); next != 0 {
			t.Errorf("next deadline %d", next)
		}
		b.lies(map[string][]string{b.lane.Sessions: nil})
		if ready := b.rdb.LLen(t.Context(), b.lane.Ready).Val(); ready != n-(n+2)/3 {
			t.Errorf("%d ready", ready)
		}
	})
}

// However much a session holds, no step of a look at it reads more than a batch or
// so.
func TestHeldIDsInSteps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		want := numbered(20 * readyqueue.MaxBatch)
		for some := range slices.Chunk(want, 1000) {
			b.must(b.rdb.SAdd(t.Context(), b.lane.Held("me"), some).Err())
		}
		rdb := env.NewClient()
		rdb.AddHook(commands(func(cmd redis.Cmder) {
			text := fmt.Sprint(cmd.Args())
			if strings.Contains(text, b.lane.Held("me")) && (cmd.Name() != "sscan" || !strings.Contains(text, "count 500")) {
				t.Errorf("sent %s", text)
			}
		}))
		held, err := readyqueue.HeldIDs(t.Context(), rdb, b.lane, "me")
		slices.Sort(want)
		slices.Sort(held)
		if got := slices.Compact(held); err != nil || !slices.Equal(got, want) {
			t.Errorf("held %d ids of %d, %v", len(got), len(want), err)
		}
	})
}
