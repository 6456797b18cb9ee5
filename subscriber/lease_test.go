package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/readyqueue"
	"github.com/dueq-io/dueq/subscriber"
)

const (
	session     = "mine"
	concurrency = 4
	lease       = 300 * time.Millisecond
	patience    = time.Minute
)

// bench is a subscriber without the goroutines that drive it: a test takes
// their place.
type bench struct {
	t      *testing.T
	rdb    redis.UniversalClient
	s      *subscriber.Subscriber
	lane   *subscriber.Lane
	keys   *key.Lane
	kicked chan struct{}
	began  chan run // slow handlers, ended by the test
	ids    int
	counts metric.Topic
}

type run struct {
	ctx   context.Context
	event *subscriber.Event
	end   chan error
}

func newBench(t *testing.T, env *redistest.Env) *bench { return newBenchPersisting(t, env, nil) }

// newBenchPersisting is one with a PersistFn.
func newBenchPersisting(t *testing.T, env *redistest.Env, persist subscriber.PersistFn) *bench {
	b := &bench{
		t: t, rdb: env.Client, keys: key.NewLane(env.Namespace, "a", 0, 1, 16),
		kicked: make(chan struct{}, 10_000), began: make(chan run, 1000),
	}
	b.s = subscriber.New(env.Client, session, subscriber.Options{
		Concurrency: concurrency, Lease: lease, HandlerTimeout: time.Hour, MaxAttempts: 10, HighWater: 1000,
		Backoff: func(int, error) time.Duration { return time.Hour }, Fallback: time.Hour, Logger: zap.NewNop(), Batches: new(metric.Sizes),
		PersistFn: persist,
	})
	handler := subscriber.HandlerFunc(func(ctx context.Context, e *subscriber.Event) error {
		if string(e.Body) == "fast" {
			return nil
		}
		r := run{ctx, e, make(chan error, 1)}
		b.began <- r
		return <-r.end
	})
	topic := b.s.AddTopic("a", []subscriber.Handler{handler}, &b.counts)
	b.lane = topic.AddLane(b.keys, func() { b.kicked <- struct{}{} })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		claimsEnded := make(chan struct{})
		close(claimsEnded)
		if err := b.s.Drain(ctx, claimsEnded); err != nil {
			t.Errorf("Drain: %v", err)
		}
	})
	return b
}

// ready puts n events into ready.
func (b *bench) ready(n int, body string) (ids []string) {
	b.t.Helper()
	for range n {
		b.ids++
		id := fmt.Sprint("id", b.ids)
		b.store(id, body)
		if err := b.rdb.RPush(b.t.Context(), b.keys.Ready, id).Err(); err != nil {
			b.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func (b *bench) store(id, body string) {
	b.t.Helper()
	record := pool.Record{Body: []byte(body)}
	text, err := record.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.rdb.HSet(b.t.Context(), b.keys.Pool, id, text).Err(); err != nil {
		b.t.Fatal(err)
	}
}

// move makes the lane claim, and returns how many events it got.
func (b *bench) move() int {
	b.t.Helper()
	found, _, err := b.lane.Move(b.t.Context(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(found.Leases)
}

func (b *bench) held() int64 { return b.rdb.SCard(b.t.Context(), b.keys.Held(session)).Val() }

func (b *bench) await(what string, ok func() bool) {
	b.t.Helper()
	redistest.Eventually(b.t, what, ok)
}

func (b *bench) next() run {
	b.t.Helper()
	select {
	case r := <-b.began:
		return r
	case <-time.After(patience):
		b.t.Fatal("no handler began")
	}
	panic("unreachable")
}

// A process claims no more than its handlers start at once while it does not
// know how fast they are, and nothing while all are busy.
func TestClaimsWhatItStarts(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env)
		b.ready(20, "slow")
		if n := b.move(); n != concurrency {
			t.Errorf("claimed %d, want %d", n, concurrency)
		}
		if n := b.move(); n != 0 {
			t.Errorf("claimed %d while all handlers are busy", n)
		}
		for range 20 {
			b.next().end <- nil
			b.await("another handler begins, or all are done", func() bool {
				b.move()
				return len(b.began) > 0 || b.rdb.HLen(t.Context(), b.keys.Pool).Val() == 0
			})
		}
	})
}

// Events that were claimed for handlers which turn out slow are given back, no
// attempt poorer.
func TestSlowProcessHoardsNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env)
		b.ready(1000, "fast")
		b.await("all fast ones are acked", func() bool {
			b.move()
			return b.rdb.HLen(t.Context(), b.keys.Pool).Val() == 0
		})
		const slow = 50
		b.ready(slow, "slow")
		b.await("the handlers run", func() bool {
			b.move()
			return len(b.began) == concurrency
		})
		t.Logf("holds %d events", b.held())
		b.await("it holds what it runs", func() bool {
			return b.s.Extend(t.Context()) && b.held() == concurrency
		})
		if n := b.rdb.LLen(t.Context(), b.keys.Ready).Val(); n != slow-concurrency {
			t.Errorf("%d events lie in ready, want %d", n, slow-concurrency)
		}
		if n := b.rdb.HLen(t.Context(), b.keys.Attempts).Val(); n != 0 {
			t.Errorf("%d events lost an attempt", n)
		}
		for range concurrency {
			b.next().end <- nil
		}
	})
}

// An extension tells how many events Redis has leased to the session. If these
// are more than it knows of, the rest is given back.
func TestUnknownLeases(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env)
		known := b.ready(1, "slow")[0]
		b.move()
		first := b.next()
		b.store("unknown", "slow")
		if err := b.rdb.SAdd(t.Context(), b.keys.Held(session), "unknown").Err(); err != nil {
			t.Fatal(err)
		}
		if !b.s.Extend(t.Context()) {
			t.Fatal("Extend failed")
		}
		<-b.kicked
		b.await("the unknown event is given back, and claimed", func() bool {
			b.move()
			return len(b.began) == 1
		})
		second := b.next()
		if second.event.ID != "unknown" || second.event.Attempt != 1 {
			t.Errorf("handed over %+v", second.event)
		}
		if first.ctx.Err() != nil || first.event.ID != known {
			t.Errorf("the known lease: %+v, %v", first.event, context.Cause(first.ctx))
		}
		first.end <- nil
		second.end <- nil
	})
}

// A session that was taken over loses all its leases, and never gets them back:
// what it claims from then on it claims under another name.
func TestTakenSession(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for _, notice := range []string{"extend", "claim", "settle"} {
			b := newBench(t, env)
			id := b.ready(1, "slow")[0]
			b.move()
			lost := b.next()
			if err := b.rdb.ZAdd(t.Context(), b.keys.Sessions, redis.Z{Score: 1, Member: session}).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := readyqueue.Expire(t.Context(), b.rdb, b.keys, time.Now().UnixMilli()); err != nil {
				t.Fatal(err)
			}
			switch notice {
			case "extend":
				b.s.Extend(t.Context())
			case "claim":
				if _, _, err := b.lane.Move(t.Context(), nil); !errors.Is(err, subscriber.ErrLeaseLost) {
					t.Errorf("claim by a session that was taken over: %v", err)
				}
			case "settle":
				lost.end <- nil
				b.await("the outcome is settled", func() bool { return b.s.Extend(t.Context()) && b.move() > 0 })
			}
			if notice != "settle" {
				if cause := context.Cause(lost.ctx); !errors.Is(cause, subscriber.ErrLeaseLost) {
					t.Errorf("after %s the handler's ctx ended with %v", notice, cause)
				}
				lost.end <- errors.New("too late")
				b.await("the event is claimed again", func() bool { return b.move() > 0 })
			}
			again := b.next()
			if again.event.ID != id || again.event.Attempt != 2 {
				t.Errorf("handed over %+v, want %s with attempt 2", again.event, id)
			}
			if again.ctx.Err() != nil {
				t.Errorf("the ctx of the new lease ended: %v", context.Cause(again.ctx))
			}
			if n := b.held(); notice != "settle" && n != 0 {
				t.Errorf("%d events are leased under the old name", n)
			}
			again.end <- nil
			b.await("the event is acked", func() bool { return b.rdb.HLen(t.Context(), b.keys.Pool).Val() == 0 })
			b.rdb.Del(t.Context(), b.keys.Sessions)
			b.await("the ack is counted", func() bool { return b.counts.Acked.Load() == 1 })
			if n := b.counts.Lost.Load(); n != 1 || b.counts.Released.Load()+b.counts.Retried.Load() != 0 {
				t.Errorf("after %s %d lost leases were counted", notice, n)
			}
		}
	})
}
