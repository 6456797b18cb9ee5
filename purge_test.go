package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func ExampleQueue_Purge() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	tomorrow := time.Now().Add(24 * time.Hour)
	for range 3 {
		if _, err := q.PublishEvent(ctx, "newsletter", nil, tomorrow); err != nil {
			fmt.Println(err)
			return
		}
	}
	n, err := q.Purge(ctx, "newsletter")
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// purge purges the topic and fails the test unless n events were forgotten.
func purge(t *testing.T, q *dueq.Queue, n int) {
	t.Helper()
	if got, err := q.Purge(t.Context(), topic); got != n || err != nil {
		t.Errorf("Purge = %d, %v; want %d", got, err, n)
	}
}

func TestPurge(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never, Concurrency: 2})
		st := newStage(t)
		subscribe(t, q, topic, st)
		dead := publish(t, q, topic, "dead", past())
		st.next().end(dueq.SkipRetry(errBroken))
		retried := publish(t, q, topic, "retried", past())
		st.next().end(errBroken)
		awaitState(t, q, topic, dead, dueq.StateDead)
		awaitState(t, q, topic, retried, dueq.StateScheduled)
		held := publish(t, q, topic, "held", past())
		first := st.next()
		publishKey(t, q, "again", past(), dueq.KeyReject)
		second := st.next()
		publishKey(t, q, "and again", time.Now(), dueq.KeyReplace) // while it is handled
		scheduled := publishMany(t, q, 20, time.Now().Add(time.Hour))

		purge(t, q, 2+20)
		conserved(t, env, topic)
		for _, id := range append(scheduled, dead, retried) {
			if _, err := q.Get(t.Context(), topic, id); !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("after the purge: %v", err)
			}
		}
		if s := stats(t, q, topic); s.Leased != 2 || s.Scheduled+s.Ready+s.Dead != 0 || s.Cancelled != 22 {
			t.Errorf("stats %+v", s)
		}
		purge(t, q, 0)

		// What is held settles as ever.
		first.want(t, held, "held", 1)
		first.end(errBroken)
		awaitState(t, q, topic, held, dueq.StateScheduled)
		second.want(t, theKey, "again", 1)
		second.end(nil)
		a := st.next()
		a.want(t, theKey, "and again", 1)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		purge(t, q, 1)
		st.none()
		conserved(t, env, topic)
	})
}

// Events of other bucket and partition counts are found, and nothing of an idle
// topic stays but its counts.
func TestPurgeLeavesNoKeys(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for i, opts := range []dueq.Options{{}, {Buckets: 64}, {Partitions: 3}} {
			q := newQueue(t, env, opts)
			publishMany(t, q, 100, time.Now().Add(time.Hour))
			publishMany(t, q, 100, past())
			id := dueq.WithID(fmt.Sprint(theKey, i))
			publish(t, q, topic, "x", past(), id)
			publish(t, q, topic, "x", past(), id, dueq.WithKeyPolicy(dueq.KeyKeep)) // leaves a mark
		}
		purge(t, newQueue(t, env, dueq.Options{Buckets: 5}), 3*201)
		keys, err := env.Client.Keys(t.Context(), "*"+env.Namespace+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if !strings.HasSuffix(k, ":meta") && !strings.HasSuffix(k, ":stats") && k != key.Topics(env.Namespace) {
				t.Errorf("key %q is left", k)
			}
		}
		if len(keys) != 2*(1+3)+1 {
			t.Errorf("keys %q are left", keys)
		}
	})
}

func TestPurgeThatCannotBe(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lost := false
		rdb := env.NewClient()
		rdb.AddHook(&hook{command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			if err := next(ctx, cmd); err != nil || !lost || !isMove(cmd) {
				return err
			}
			cmd.SetErr(errFault)
			return errFault
		}})
		q := newQueueOn(t, env, rdb, dueq.Options{})
		if n, err := q.Purge(t.Context(), "a{b"); n != 0 || !errors.Is(err, dueq.ErrTopicInvalid) {
			t.Errorf("Purge of a bad name = %d, %v", n, err)
		}
		purge(t, q, 0)
		if left := wrote(t, env); len(left) != 0 {
			t.Errorf("purging an unknown topic wrote %q", left)
		}
		publish(t, q, topic, "x", past())
		lost = true
		if n, err := q.Purge(t.Context(), topic); n != 0 || !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("Purge whose reply is lost = %d, %v", n, err)
		}
		lost = false
		purge(t, q, 0) // it had taken effect
		shutDown(t, q)
		if _, err := q.Purge(t.Context(), topic); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("Purge after ShutDown: %v", err)
		}
	})
}

// purges is a client of env on which each step of a purge, once it has run, is
// shown to do with the number of events that it has forgotten.
func purges(env *redistest.Env, do func(n int)) *redis.Client {
	rdb := env.NewClient()
	see := func(cmd redis.Cmder) {
		args := cmd.Args()
		reply, ok := cmd.(interface{ Slice() ([]any, error) })
		if !ok || !isMove(cmd) || len(args) < 13 || !strings.HasSuffix(fmt.Sprint(args[3]), ":pool") || !strings.HasSuffix(fmt.Sprint(args[10]), ":dead") {
			return
		}
		if values, err := reply.Slice(); err == nil && len(args) == 3+args[2].(int)+4 && values[0] == "ok" {
			do(int(values[1].(int64)))
		}
	}
	rdb.AddHook(&hook{
		command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			err := next(ctx, cmd)
			see(cmd)
			return err
		},
		pipeline: func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
			err := next(ctx, cmds)
			for _, cmd := range cmds {
				see(cmd)
			}
			return err
		},
	})
	return rdb
}

// When ctx ends the purge stops, and n is what it has done; another goes on.
func TestPurgeWhoseCtxEnds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		q := newQueueOn(t, env, purges(env, func(int) { cancel() }), dueq.Options{})
		publishMany(t, q, 1300, time.Now().Add(time.Hour))
		if n, err := q.Purge(ctx, topic); n != 500 || !errors.Is(err, context.Canceled) {
			t.Errorf("Purge whose ctx ends = %d, %v", n, err)
		}
		if n, err := q.Purge(ctx, topic); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Purge whose ctx has ended = %d, %v", n, err)
		}
		conserved(t, env, topic)
		purge(t, q, 800)
	})
}

// However many events a topic has, each step of a purge takes few.
func TestPurgeManyInSteps(t *testing.T) {
	t.Parallel()
	const n, most = 200_000, 500
	env := redistest.Start(t).Env()
	var steps []int
	q := newQueueOn(t, env, purges(env, func(n int) { steps = append(steps, n) }), dueq.Options{})
	due := time.Now().Add(time.Hour)
	ids := publishMany(t, q, n, due)
	for _, id := range ids[:100] {
		if err := q.Cancel(t.Context(), topic, id); err != nil {
			t.Fatal(err)
		}
	}
	purge(t, q, n-100)
	sum := 0
	for _, n := range steps {
		sum += n
	}
	if len(steps) != n/most || slices.Max(steps) > most || sum != n-100 {
		t.Errorf("%d steps, the largest of %d, %d in all", len(steps), slices.Max(steps), sum)
	}
	if s := stats(t, q, topic); s.Scheduled+s.Ready+s.Leased+s.Dead != 0 || s.Cancelled != n {
		t.Errorf("stats %+v", s)
	}
	conserved(t, env, topic)
}

// Purged again and again while it is published to and handled, a topic loses
// nothing but what Purge says it has forgotten.
func TestPurgeWhileInUse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 3000
		q := newQueue(t, env, dueq.Options{Backoff: noPause, MaxAttempts: 2})
		subscribe(t, q, topic, dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			if e.ID[0] < 'A' { // one in six
				return errBroken
			}
			return nil
		}))
		purged := 0
		published := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for ended := false; !ended; {
				select {
				case <-published:
					ended = true
				default:
				}
				n, err := q.Purge(t.Context(), topic)
				if err != nil {
					t.Error(err)
				}
				purged += n
			}
		})
		for i := range n / 100 {
			publishMany(t, q, 100, time.Now().Add(time.Duration(i%3-1)*5*time.Millisecond))
			if i%10 == 0 {
				conserved(t, env, topic)
			}
		}
		close(published)
		wg.Wait()
		eventually(t, "all are settled", func() bool {
			s := stats(t, q, topic)
			return s.Scheduled+s.Ready+s.Leased == 0
		})
		s := stats(t, q, topic)
		if s.Published != n || s.Acked+s.Dead+s.Cancelled != n || s.Cancelled != purged {
			t.Errorf("purged %d, stats %+v", purged, s)
		}
		conserved(t, env, topic)
	})
}

// A purge makes room in a Redis that has none left.
func TestPurgeFullRedis(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t, "--maxmemory-policy", "noeviction").Env()
	q := newQueue(t, env, dueq.Options{})
	publishMany(t, q, 600, past())
	publishMany(t, q, 600, time.Now().Add(time.Hour))
	if err := env.Client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	purge(t, q, 1200)
}
