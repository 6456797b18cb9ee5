package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// clean fails the test unless a check finds nothing.
func clean(t *testing.T, q *dueq.Queue) *dueq.Report {
	t.Helper()
	report, err := q.Check(t.Context(), topic)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	if len(report.Findings) > 0 {
		t.Errorf("check found %+v", report.Findings)
	}
	return report
}

// lived is a topic with events in every place, in lanes of two partition counts
// and buckets of two counts.
type lived struct {
	q, other *dueq.Queue // 3 partitions, 16 buckets; 1 partition, 4 buckets
	st       *stage
	held     []*act // deliveries that are under way
	ids      map[string][]string
}

func newLived(t *testing.T, env *redistest.Env) *lived {
	t.Helper()
	l := &lived{st: newStage(t), ids: make(map[string][]string)}
	l.other = newQueue(t, env, dueq.Options{Buckets: 4, Backoff: never})
	wide := newQueue(t, env, dueq.Options{Buckets: 64, Partitions: 3})
	l.q = newQueue(t, env, dueq.Options{Partitions: 3, Backoff: never})
	hour := time.Now().Add(time.Hour)
	for range 40 {
		for _, q := range []*dueq.Queue{l.q, l.other, wide} {
			l.ids["scheduled"] = append(l.ids["scheduled"], publish(t, q, topic, "scheduled", hour))
		}
	}
	subscribe(t, l.q, topic, l.st)
	for range 12 {
		id := publish(t, l.q, topic, "dead", past(), dueq.WithMaxAttempts(1))
		l.st.next().end(errBroken)
		awaitState(t, l.q, topic, id, dueq.StateDead)
		l.ids["dead"] = append(l.ids["dead"], id)

		id = publish(t, l.q, topic, "retried", past())
		l.st.next().end(errBroken)
		awaitState(t, l.q, topic, id, dueq.StateScheduled)
		l.ids["retried"] = append(l.ids["retried"], id)

		id = publish(t, l.q, topic, "held", past())
		l.held = append(l.held, l.st.next())
		l.ids["held"] = append(l.ids["held"], id)
	}
	for _, id := range l.ids["held"][:3] { // marked
		publish(t, l.q, topic, "marked", hour, dueq.WithID(id), dueq.WithKeyPolicy(dueq.KeyReplace))
	}
	ready := newQueue(t, env, dueq.Options{Partitions: farPartitions})
	for i := range 6 {
		id := publish(t, ready, topic, "ready", past(), dueq.WithID(far(fmt.Sprint("ready", i))))
		l.ids["ready"] = append(l.ids["ready"], id)
	}
	return l
}

// farPartitions is a partition count with lanes that a lived topic's subscriber
// does not serve: those after the first three.
const farPartitions = 7

// far is an id that lies in such a lane.
func far(id string) string {
	for key.Partition(id, farPartitions) < 3 {
		id += "+"
	}
	return id
}

// lane is where an event of a queue with so many partitions lies.
func lane(env *redistest.Env, id string, partitions int) *key.Lane {
	return key.NewLane(env.Namespace, topic, key.Partition(id, partitions), partitions, 16)
}

// damage breaks what it can in each way, and tells what a check has to find: the
// ids by kind.
func (l *lived) damage(t *testing.T, env *redistest.Env) map[dueq.FindingKind][]string {
	t.Helper()
	want := make(map[dueq.FindingKind][]string)
	hour := float64(time.Now().Add(time.Hour).UnixMilli())
	next := func(place string) string {
		id := l.ids[place][0]
		l.ids[place] = l.ids[place][1:]
		return id
	}
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		ctx := t.Context()
		note := func(kind dueq.FindingKind, id string) string {
			want[kind] = append(want[kind], id)
			return id
		}
		for _, partitions := range []int{1, 3} {
			id := note(dueq.FindingNoPlace, fmt.Sprint("orphan", partitions))
			p.HSet(ctx, lane(env, id, partitions).Pool, id, "{\"v\":1,\"at\":1}\nbody")
			id = note(dueq.FindingLeftover, fmt.Sprint("leftover", partitions))
			p.HSet(ctx, lane(env, id, partitions).Attempts, id, "1||why")
		}
		id := note(dueq.FindingNoBody, far("ghost"))
		p.RPush(ctx, lane(env, id, farPartitions).Ready, id)
		id = note(dueq.FindingNoBody, next("dead"))
		want[dueq.FindingLeftover] = append(want[dueq.FindingLeftover], id)
		p.HDel(ctx, lane(env, id, 3).Pool, id)

		id = note(dueq.FindingTwoPlaces, next("dead"))
		k := lane(env, id, 3)
		p.ZAdd(ctx, k.Bucket(k.Home(id)), redis.Z{Score: hour, Member: id})
		id = note(dueq.FindingTwoPlaces, next("held"))
		p.ZAdd(ctx, lane(env, id, 3).Dead, redis.Z{Score: 1, Member: id})
		id = note(dueq.FindingTwoPlaces, l.ids["ready"][0])
		p.RPush(ctx, lane(env, id, farPartitions).Ready, id)

		id = note(dueq.FindingNoSession, l.ids["ready"][1])
		k = lane(env, id, farPartitions)
		p.LRem(ctx, k.Ready, 0, id)
		p.SAdd(ctx, k.Held("nobody"), id)

		id = note(dueq.FindingWrongBucket, l.ids["retried"][0])
		k = lane(env, id, 3)
		p.ZRem(ctx, k.Bucket(k.Home(id)), id)
		p.ZAdd(ctx, k.Bucket(99), redis.Z{Score: hour, Member: id})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// wantFindings fails the test unless the report has these ids and no others.
func wantFindings(t *testing.T, report *dueq.Report, want map[dueq.FindingKind][]string, repaired bool) {
	t.Helper()
	if len(report.Findings) != len(want) {
		t.Errorf("%d kinds found, want %d", len(report.Findings), len(want))
	}
	for _, f := range report.Findings {
		var ids []string
		for _, e := range f.Examples {
			ids = append(ids, e.ID)
			if len(e.Keys) == 0 {
				t.Errorf("%s: id %q lies in no key", f.Kind, e.ID)
			}
		}
		slices.Sort(ids)
		slices.Sort(want[f.Kind])
		wantRepaired := 0
		if repaired {
			wantRepaired = f.Count
		}
		if !slices.Equal(ids, want[f.Kind]) || f.Count != len(ids) || f.Repaired != wantRepaired {
			t.Errorf("%s: %d found, %d repaired, %q; want %q", f.Kind, f.Count, f.Repaired, ids, want[f.Kind])
		}
	}
}

// What another hand broke is found and mended, and all events with a body are
// delivered, or lie among the dead.
func TestRepair(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := newLived(t, env)
		if report := clean(t, l.q); report.Events != 3*40+3*12+6 || report.Places != report.Events {
			t.Errorf("%d events in %d places", report.Events, report.Places)
		}
		want := l.damage(t, env)
		report, err := l.other.Check(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		wantFindings(t, report, want, false)
		if report.Left() == 0 {
			t.Error("a check has repaired something")
		}
		if report, err = l.other.Repair(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		wantFindings(t, report, want, true)
		if report.Left() != 0 {
			t.Errorf("%d left", report.Left())
		}
		clean(t, l.q)
		conserved(t, env, topic)
		l.deliver(t, env)
	})
}

// deliver fails the test unless all events that are not dead are delivered.
func (l *lived) deliver(t *testing.T, env *redistest.Env) {
	t.Helper()
	for _, a := range l.held {
		a.end(nil)
	}
	shutDown(t, l.q)
	open := make(map[string]bool)
	for _, place := range []string{"scheduled", "retried", "ready"} {
		for _, id := range l.ids[place] {
			open[id] = true
		}
	}
	last := newQueue(t, env, dueq.Options{Partitions: 2})
	got := make(seen, 1000)
	subscribe(t, last, topic, got)
	for id := range open {
		if err := last.Reschedule(t.Context(), topic, id, past()); err != nil && !errors.Is(err, dueq.ErrLeased) && !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("reschedule %s: %v", id, err)
		}
	}
	for len(open) > 0 {
		delete(open, receive(t, got).ID)
	}
	for _, id := range append(l.ids["dead"], "orphan1", "orphan3") {
		if info := get(t, last, topic, id); info.State != dueq.StateDead {
			t.Errorf("event %s is %s", id, info.State)
		}
	}
	if info := get(t, last, topic, "orphan1"); info.LastError != "found without a place by check" || string(info.Body) != "body" {
		t.Errorf("an event that lay nowhere: %+v", info)
	}
	clean(t, last)
}

// A topic in use is found clean at any moment.
func TestCheckUnderLoad(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const publishers, each = 3, 400
		opts := dueq.Options{Partitions: 2, MaxAttempts: 3, Backoff: func(int, error) time.Duration { return rand.N(20 * time.Millisecond) }}
		handler := dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
			if rand.IntN(3) == 0 {
				return errBroken
			}
			return nil
		})
		queues := make([]*dueq.Queue, 2)
		for i := range queues {
			opts.Buckets = 4 << (2 * i)
			queues[i] = newQueue(t, env, opts)
			subscribe(t, queues[i], topic, handler)
		}
		var publishing sync.WaitGroup
		for p := range publishers {
			publishing.Go(func() {
				for i := range each {
					var err error
					q, due := queues[i%2], time.Now().Add(rand.N(100*time.Millisecond))
					if i%4 == 0 {
						_, err = q.PublishEvent(t.Context(), topic, nil, due, dueq.WithID(fmt.Sprint(rand.IntN(20))),
							dueq.WithKeyPolicy([]dueq.KeyPolicy{dueq.KeyKeep, dueq.KeyReplace}[p%2]))
					} else {
						_, err = q.PublishEvent(t.Context(), topic, nil, due)
					}
					if err != nil {
						t.Errorf("publish: %v", err)
						return
					}
				}
			})
		}
		published := make(chan struct{})
		go func() {
			publishing.Wait()
			close(published)
		}()
		for checks := 1; ; checks++ {
			report := clean(t, queues[checks%2])
			if report.Events != report.Places {
				t.Errorf("%d events in %d places", report.Events, report.Places)
			}
			report, err := queues[checks%2].Repair(t.Context(), topic)
			if err != nil || len(report.Findings) > 0 {
				t.Errorf("repair: %+v, %v", report.Findings, err)
			}
			select {
			case <-published:
				eventually(t, "all events settled", func() bool {
					s := stats(t, queues[0], topic)
					return s.Scheduled+s.Ready+s.Leased == 0
				})
				clean(t, queues[0])
				return
			default:
			}
		}
	})
}

func TestCheckRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		if _, err := q.Check(t.Context(), "a{b"); !errors.Is(err, dueq.ErrTopicInvalid) {
			t.Errorf("check = %v, want ErrTopicInvalid", err)
		}
		if report := clean(t, q); report.Topic != topic || report.Events != 0 || report.Findings == nil {
			t.Errorf("a topic that was never used: %+v", report)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Check(ctx, topic); !errors.Is(err, context.Canceled) {
			t.Errorf("check = %v, want context.Canceled", err)
		}
		shutDown(t, q)
		if _, err := q.Repair(t.Context(), topic); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("repair = %v, want ErrShutDown", err)
		}
	})
}

// A full Redis can be mended, and loses nothing.
func TestRepairFullRedis(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	q := newQueue(t, env, dueq.Options{})
	hour := time.Now().Add(time.Hour)
	ids := make([]string, 30)
	for i := range ids {
		ids[i] = publish(t, q, topic, "body", hour)
	}
	k := key.NewLane(env.Namespace, topic, 0, 1, 16)
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, id := range ids {
			p.ZRem(t.Context(), k.Bucket(k.Home(id)), id)
			switch i % 3 {
			case 0:
				p.ZAdd(t.Context(), k.Bucket(77), redis.Z{Score: 1, Member: id})
			case 1:
				p.SAdd(t.Context(), k.Held("nobody"), id)
			}
		}
		p.ConfigSet(t.Context(), "maxmemory", "1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := q.Repair(t.Context(), topic)
	if err != nil || len(report.Findings) != 3 || report.Left() != 0 {
		t.Errorf("repair: %+v, %v", report, err)
	}
	if report := clean(t, q); report.Events != len(ids) || report.Places != len(ids) {
		t.Errorf("%d events in %d places", report.Events, report.Places)
	}
}

func ExampleQueue_Check() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	if _, err := q.PublishEvent(ctx, "order.close", nil, time.Now().Add(time.Hour)); err != nil {
		fmt.Println(err)
		return
	}
	report, err := q.Check(ctx, "order.close")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		fmt.Println(f.Kind, f.Count, f.Examples) // and q.Repair mends them
	}
	fmt.Println(report.Events, "event,", report.Left(), "findings")
	// Output: 1 event, 0 findings
}
