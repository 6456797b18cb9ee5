package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// holds has a session hold more events, n of them.
func holds(t *testing.T, env *redistest.Env, l *key.Lane, session string, n int) (ids []string) {
	t.Helper()
	has := env.Client.SCard(t.Context(), l.Held(session)).Val()
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ZAdd(t.Context(), l.Sessions, redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: session})
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s %s %d", l.Tag, session, int(has)+i))
			p.HSet(t.Context(), l.Pool, ids[i], "{\"v\":1,\"at\":1732184350000}\nx")
			p.SAdd(t.Context(), l.Held(session), ids[i])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// listAll reads all pages, and calls after with each.
func listAll(t *testing.T, rdb redis.UniversalClient, l inspect.Listing, after func([]inspect.Listed)) (ids []string) {
	t.Helper()
	for {
		page, next, err := l.Run(t.Context(), rdb)
		if err != nil || len(page) > l.Limit {
			t.Fatalf("a page of %d: %v", len(page), err)
		}
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		after(page)
		if l.After = next; next == nil {
			return ids
		}
	}
}

// once fails the test unless got are all of want, in any order, each once.
func once(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d listed, %d of them different; want %d", what, len(got), len(slices.Compact(got)), len(want))
	}
}

// What is leased is listed by lane, session and id, however it is divided.
func TestListLeased(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lanes := []*key.Lane{nil, key.NewLane(env.Namespace, "a", 0, 2, 16), key.NewLane(env.Namespace, "a", 1, 2, 16)}
		var want []string
		for _, l := range lanes[1:] {
			for s, n := range []int{0, 1, 30, 0, 260, 240, 700, 2, 2} {
				ids := holds(t, env, l, fmt.Sprint("s", s), n)
				slices.Sort(ids)
				want = append(want, ids...)
			}
		}
		for _, limit := range []int{1, 7, 100, 500} {
			got := listAll(t, env.Client, inspect.Listing{State: "leased", Lanes: lanes, Limit: limit}, func([]inspect.Listed) {})
			if !slices.Equal(got, want) {
				once(t, fmt.Sprint("limit ", limit), got, want)
				t.Errorf("limit %d: not in order", limit)
			}
		}
		prefix := want[len(want)-1]
		got := listAll(t, env.Client, inspect.Listing{State: "leased", Lanes: lanes, Limit: 1, Prefix: prefix}, func([]inspect.Listed) {})
		once(t, "with a prefix", got, []string{prefix})
	})
}

// While some of what was listed is settled, and sessions come and go, the rest is
// listed once.
func TestListLeasedWhileEventsGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := key.NewLane(env.Namespace, "a", 0, 1, 16)
		sizes := map[string]int{"b": 40, "d": 900, "f": 3, "h": 130, "j": 1}
		if env.Mini == nil { // miniredis's cursors are offsets: in a large set they lose what moves up
			sizes["e"] = 5200
		}
		var want []string
		for session, n := range sizes {
			want = append(want, holds(t, env, l, session, n)...)
		}
		pages := 0
		got := listAll(t, env.Client, inspect.Listing{State: "leased", Lanes: []*key.Lane{l}, Limit: 7}, func(page []inspect.Listed) {
			for i, e := range page {
				if session := strings.Fields(e.ID)[1]; i%2 == 0 || session == "b" {
					if err := env.Client.SRem(t.Context(), l.Held(session), e.ID).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if pages++; pages == 2 {
				holds(t, env, l, "a", 5) // before what was listed
				if err := env.Client.ZRem(t.Context(), l.Sessions, "c").Err(); err != nil {
					t.Fatal(err)
				}
			}
		})
		once(t, "while half of them go", got, want)
	})
}

// A page of what a session holds that holds very much costs no more than others,
// and all its events are listed, also while more come.
func TestListOfManyLeased(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const held = 6_000
		l := key.NewLane(env.Namespace, "a", 0, 1, 16)
		want := slices.Concat(holds(t, env, l, "few", 3), holds(t, env, l, "many", held))
		rdb, reads := env.NewClient(), &heldReads{}
		rdb.AddHook(reads)
		listing := inspect.Listing{State: "leased", Lanes: []*key.Lane{l}, Limit: 100}
		for range 3 {
			page, next, err := listing.Run(t.Context(), rdb)
			if err != nil || len(page) != listing.Limit || next == nil {
				t.Fatalf("a page of %d, next %+v: %v", len(page), next, err)
			}
			if n := reads.count.Swap(0); n > 4 { // each reads 500 ids at most
				t.Errorf("%d reads for a page of %d", n, listing.Limit)
			}
			listing.After = next
		}
		if env.Mini != nil {
			return // it sorts the whole set at each of the steps
		}
		for _, limit := range []int{60, 500} {
			listing = inspect.Listing{State: "leased", Lanes: []*key.Lane{l}, Limit: limit}
			once(t, fmt.Sprint("limit ", limit), listAll(t, rdb, listing, func([]inspect.Listed) {}), want)
		}
		pages := 0
		got := listAll(t, rdb, listing, func([]inspect.Listed) {
			if pages++; pages == 3 {
				holds(t, env, l, "many", held) // so that its table grows
			}
		})
		for _, id := range want {
			if !slices.Contains(got, id) {
				t.Errorf("%q was not listed", id)
			}
		}
	})
}

// heldReads is a hook that counts reads of held sets.
type heldReads struct{ count atomic.Int64 }

func (r *heldReads) see(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()), ":held:") && cmd.Name() != "scard" {
			r.count.Add(1)
		}
	}
}

// DialHook is for package redis, as are ProcessHook and ProcessPipelineHook.
func (r *heldReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *heldReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.see(cmd)
		return next(ctx, cmd)
	}
}

func (r *heldReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.see(cmds...)
		return next(ctx, cmds)
	}
}
