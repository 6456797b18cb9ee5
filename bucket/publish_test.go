package bucket_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func lane(env *redistest.Env, topic string, buckets int) *key.Lane {
	return key.NewLane(env.Namespace, topic, 0, 1, buckets)
}

func event(id string, due time.Time) *bucket.Event {
	return &bucket.Event{ID: id, Record: "{\"v\":1,\"at\":1}\n" + id, Due: due.UnixMilli()}
}

func publish(t *testing.T, env *redistest.Env, l *key.Lane, events ...*bucket.Event) {
	t.Helper()
	bucket.Publish(t.Context(), env.Client, []bucket.Batch{{Lane: l, Events: events}}, 0)
	for _, e := range events {
		if e.Err != nil {
			t.Errorf("publish %s: %v", e.ID, e.Err)
		}
	}
}

func counter(t *testing.T, env *redistest.Env, l *key.Lane, name string) int {
	t.Helper()
	n, err := strconv.Atoi(env.Client.HGet(t.Context(), l.Stats, name).Val())
	if err != nil {
		return 0
	}
	return n
}

func TestPolicyString(t *testing.T) {
	t.Parallel()
	for p, want := range map[bucket.Policy]string{
		bucket.Reject: "reject", bucket.Keep: "keep", bucket.Replace: "replace", -1: "Policy(-1)", 3: "Policy(3)",
	} {
		if got := p.String(); got != want {
			t.Errorf("%d is %q, want %q", int(p), got, want)
		}
	}
}

// Many lanes, many buckets, keyed or not, due or not, in one round trip.
func TestPublish(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const lanes, each = 5, 200
		var batches []bucket.Batch
		for i := range lanes {
			b := bucket.Batch{Lane: lane(env, fmt.Sprint("topic ", i), 7)}
			for n := range each {
				due := time.Now().Add(time.Hour)
				if n%2 == 0 {
					due = time.Now().Add(-time.Hour)
				}
				e := event(fmt.Sprint(n), due)
				e.Keyed = n%3 == 0
				b.Events = append(b.Events, e)
			}
			batches = append(batches, b)
		}
		bucket.Publish(t.Context(), env.Client, batches, 0)
		for _, b := range batches {
			scheduled := int64(0)
			for i := range 7 {
				n := env.Client.ZCard(t.Context(), b.Lane.Bucket(i)).Val()
				scheduled += n
			}
			ready := env.Client.LLen(t.Context(), b.Lane.Ready).Val()
			if stored := env.Client.HLen(t.Context(), b.Lane.Pool).Val(); ready != each/2 || scheduled != each/2 || stored != each {
				t.Errorf("%d ready, %d scheduled, %d stored", ready, scheduled, stored)
			}
			if n := counter(t, env, b.Lane, "published"); n != each {
				t.Errorf("%d counted", n)
			}
			if env.Client.LLen(t.Context(), b.Lane.Bell).Val() != 1 {
				t.Error("the bell was not rung")
			}
			for _, e := range b.Events {
				if e.Err != nil {
					t.Errorf("%s: %v", e.ID, e.Err)
				}
				if got := env.Client.HGet(t.Context(), b.Lane.Pool, e.ID).Val(); got != e.Record {
					t.Errorf("%s has record %q", e.ID, got)
				}
				at := env.Client.ZScore(t.Context(), b.Lane.Bucket(b.Lane.Home(e.ID)), e.ID).Val()
				if due := e.Due > time.Now().UnixMilli(); due && int64(at) != e.Due {
					t.Errorf("%s is due at %v, want %d", e.ID, at, e.Due)
				}
			}
		}
	})
}

// An id that occurs again in a batch meets what was there before it.
func TestPublishOneIDAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := lane(env, "a", 3)
		at := time.Now().Add(time.Hour)
		var events []*bucket.Event
		for i, p := range []bucket.Policy{bucket.Keep, bucket.Reject, bucket.Replace, bucket.Keep, bucket.Keep, bucket.Reject} {
			e := event("x", at.Add(time.Duration(i)*time.Minute))
			e.Record += strconv.Itoa(i)
			e.Keyed, e.Policy = true, p
			events = append(events, e)
		}
		bucket.Publish(t.Context(), env.Client, []bucket.Batch{{Lane: l, Events: events}}, 0)
		for i, e := range events {
			if e.Found != (i > 0) || errors.Is(e.Err, bucket.ErrDuplicateID) != (e.Policy == bucket.Reject) {
				t.Errorf("publish %d, to %v: found %v, %v", i, e.Policy, e.Found, e.Err)
			}
		}
		if got, want := env.Client.HGet(t.Context(), l.Pool, "x").Val(), events[2].Record; got != want {
			t.Errorf("record %q, want %q", got, want)
		}
		if got, want := int64(env.Client.ZScore(t.Context(), l.Bucket(l.Home("x")), "x").Val()), events[2].Due; got != want {
			t.Errorf("due at %d, want %d", got, want)
		}
		for name, want := range map[string]int{"published": 2, "kept": 2, "duplicates": 2} {
			if n := counter(t, env, l, name); n != want {
				t.Errorf("%d %s, want %d", n, name, want)
			}
		}
	})
}

// What is due goes to ready while that is short, then to its bucket.
func TestHighWater(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := lane(env, "a", 3)
		const n = bucket.HighWater + 100
		for i := 0; i < n; i += 400 {
			var events []*bucket.Event
			for j := i; j < min(i+400, n); j++ {
				e := event(fmt.Sprint(j), time.Now().Add(-time.Minute))
				e.Keyed = j%2 == 0
				events = append(events, e)
			}
			publish(t, env, l, events...)
		}
		var scheduled int64
		for i := range 3 {
			scheduled += env.Client.ZCard(t.Context(), l.Bucket(i)).Val()
		}
		if ready := env.Client.LLen(t.Context(), l.Ready).Val(); ready != bucket.HighWater || scheduled != 100 {
			t.Errorf("%d ready, %d scheduled", ready, scheduled)
		}
	})
}

// heard returns the alarms of a message: due time by bucket.
func heard(t *testing.T, alarms <-chan *redis.Message) map[string]string {
	t.Helper()
	select {
	case m := <-alarms:
		clock, parts, _ := strings.Cut(m.Payload, " ")
		us, err := strconv.ParseInt(clock, 10, 64)
		if now := time.Now(); err != nil || time.UnixMicro(us).Sub(now).Abs() > time.Minute {
			t.Errorf("message %q at %v", m.Payload, now)
		}
		heads := map[string]string{}
		for part := range strings.FieldsSeq(parts) {
			i, due, _ := strings.Cut(part, "=")
			heads[i] = due
		}
		return heads
	case <-time.After(time.Minute):
		t.Fatal("no alarm")
	}
	return nil
}

// Carriers are told of each head that moved earlier, and of nothing else.
func TestAlarms(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := lane(env, "a", 1)
		sub := env.Client.Subscribe(t.Context(), l.Alarm)
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil { // it is subscribed
			t.Fatal(err)
		}
		alarms := sub.Channel()
		start := time.Now().Add(time.Hour)
		at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
		expect := func(what string, minutes int) {
			t.Helper()
			if got, want := heard(t, alarms), fmt.Sprint(at(minutes).UnixMilli()); len(got) != 1 || got["0"] != want {
				t.Errorf("%s: %v, want bucket 0 at %s", what, got, want)
			}
		}
		publish(t, env, l, event("30", at(30)), event("40", at(40)), event("20", at(20)))
		expect("first events", 20)
		publish(t, env, l, event("50", at(50)))                        // unheard: it is not the head
		publish(t, env, l, event("now", time.Now().Add(-time.Minute))) // nor this: it is ready
		publish(t, env, l, event("10", at(10)), event("60", at(60)))   //
		expect("an earlier event", 10)                                 //
		keyed := &bucket.Event{ID: "60", Record: "x", Keyed: true, Policy: bucket.Replace}
		keyed.Due = at(70).UnixMilli()
		publish(t, env, l, keyed) // unheard
		keyed.Due = at(5).UnixMilli()
		publish(t, env, l, keyed)
		expect("a replaced event", 5)
		kept := event("kept", at(4))
		kept.Keyed, kept.Policy = true, bucket.Keep
		publish(t, env, l, kept)
		expect("a new key", 4)
		publish(t, env, l, kept) // unheard
		lies := event("now", at(2))
		lies.Keyed, lies.Policy = true, bucket.Keep
		publish(t, env, l, lies) // unheard: it is ready
		if n := env.Client.ZScore(t.Context(), l.Bucket(0), lies.ID); n.Err() == nil {
			t.Error("what is ready lies in a bucket, too")
		}
		if err := bucket.Reschedule(t.Context(), env.Client, l, "60", at(80).UnixMilli()); err != nil { // unheard
			t.Fatal(err)
		}
		if err := bucket.Reschedule(t.Context(), env.Client, l, "40", at(1).UnixMilli()); err != nil {
			t.Fatal(err)
		}
		expect("a rescheduled event", 1)
		if err := bucket.Cancel(t.Context(), env.Client, l, "40"); err != nil { // unheard
			t.Fatal(err)
		}
		publish(t, env, l, event("0", at(0)))
		expect("the last event", 0)
	})
}

// Two processes with different bucket counts find each other's events.
func TestBucketCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lanes := []*key.Lane{lane(env, "a", 3), lane(env, "a", 50), lane(env, "a", 1)}
		hour := time.Now().Add(time.Hour)
		for i := range 90 {
			e := event(fmt.Sprint(i), hour)
			e.Keyed = i%2 == 0
			publish(t, env, lanes[i/30], e)
		}
		for i := range 90 {
			for _, l := range lanes {
				again := event(fmt.Sprint(i), hour)
				again.Keyed = true
				bucket.Publish(t.Context(), env.Client, []bucket.Batch{{Lane: l, Events: []*bucket.Event{again}}}, 0)
				if !errors.Is(again.Err, bucket.ErrDuplicateID) {
					t.Fatalf("publish of %d = %v, want ErrDuplicateID", i, again.Err)
				}
			}
			if err := bucket.Cancel(t.Context(), env.Client, lanes[(i+1)%3], fmt.Sprint(i)); err != nil {
				t.Errorf("cancel %d: %v", i, err)
			}
		}
		if got := env.Client.HGet(t.Context(), lanes[0].Meta, "buckets").Val(); got != "1,3,50" {
			t.Errorf("Redis knows of %q", got)
		}
	})
}

// Cancel and Reschedule change nothing for an id that does not exist or that
// somebody holds.
func TestMoveRefuses(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		l := lane(env, "a", 4)
		publish(t, env, l, event("held", time.Now().Add(-time.Minute)))
		if err := env.Client.LPop(t.Context(), l.Ready).Err(); err != nil { // as good as held
			t.Fatal(err)
		}
		for id, want := range map[string]error{"none": bucket.ErrNotFound, "held": bucket.ErrLeased} {
			if err := bucket.Cancel(t.Context(), env.Client, l, id); !errors.Is(err, want) {
				t.Errorf("cancel %s = %v, want %v", id, err, want)
			}
			if err := bucket.Reschedule(t.Context(), env.Client, l, id, 1); !errors.Is(err, want) {
				t.Errorf("reschedule %s = %v, want %v", id, err, want)
			}
		}
		if got := env.Client.HGet(t.Context(), l.Pool, "held").Val(); got != "{\"v\":1,\"at\":1}\nheld" {
			t.Errorf("record %q", got)
		}
		if n := counter(t, env, l, "cancelled") + counter(t, env, l, "rescheduled"); n != 0 {
			t.Errorf("%d counted", n)
		}
	})
}
