package dueqprom_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqprom"
	"github.com/dueq-io/dueq/internal/redistest"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

func newQueue(t *testing.T, rdb redis.UniversalClient, ns string) *dueq.Queue {
	t.Helper()
	q, err := dueq.New(rdb, dueq.Options{Namespace: ns, Fallback: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.ShutDown(ctx); err != nil && !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("ShutDown: %v", err)
		}
	})
	return q
}

func publish(t *testing.T, q *dueq.Queue, topic string, in time.Duration, opts ...dueq.PublishOption) {
	t.Helper()
	if _, err := q.PublishEvent(t.Context(), topic, nil, time.Now().Add(in), opts...); err != nil {
		t.Fatal(err)
	}
}

func register(t *testing.T, q *dueq.Queue, opts dueqprom.Options) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(dueqprom.NewCollector(q, opts)); err != nil {
		t.Fatal(err)
	}
	return r
}

// gather is all that a registry exposes, as text.
func gather(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func compare(t *testing.T, r *prometheus.Registry, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestCollector(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env.NewClient(), env.Namespace)
		publish(t, q, "mail", time.Hour, dueq.WithID("a"))
		publish(t, q, "mail", time.Hour, dueq.WithID("a"), dueq.WithKeyPolicy(dueq.KeyKeep))
		publish(t, q, "mail", -10*time.Minute)
		publish(t, q, "mail", 0)
		handled := make(chan struct{}, 10)
		if err := q.Subscribe("mail", dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
			handled <- struct{}{}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		r := register(t, q, dueqprom.Options{Depths: true})
		end := time.After(patience)
		for q.Metrics().Topics["mail"].Acked < 2 {
			select {
			case <-handled:
			case <-end:
				t.Fatal("the events were not handled")
			case <-time.After(time.Millisecond): // the ack comes after the handler
			}
		}
		publish(t, q, "waits", -time.Minute)

		problems, err := testutil.GatherAndLint(r)
		if err != nil || len(problems) > 0 {
			t.Errorf("lint: %v, %v", problems, err)
		}
		compare(t, r, `
# HELP dueq_events_acked_total Events handled.
# TYPE dueq_events_acked_total counter
dueq_events_acked_total{topic="mail"} 2
dueq_events_acked_total{topic="waits"} 0
# HELP dueq_events_duplicate_total Publishes that found an event with their id, by the key policy that was applied.
# TYPE dueq_events_duplicate_total counter
dueq_events_duplicate_total{policy="keep",topic="mail"} 1
dueq_events_duplicate_total{policy="reject",topic="mail"} 0
dueq_events_duplicate_total{policy="replace",topic="mail"} 0
dueq_events_duplicate_total{policy="keep",topic="waits"} 0
dueq_events_duplicate_total{policy="reject",topic="waits"} 0
dueq_events_duplicate_total{policy="replace",topic="waits"} 0
# HELP dueq_events_published_total Events stored by publishes, replacing included.
# TYPE dueq_events_published_total counter
dueq_events_published_total{topic="mail"} 3
dueq_events_published_total{topic="waits"} 1
# HELP dueq_topic_events Events of a topic, by where they lie: scheduled, ready, leased, dead.
# TYPE dueq_topic_events gauge
dueq_topic_events{state="dead",topic="mail"} 0
dueq_topic_events{state="leased",topic="mail"} 0
dueq_topic_events{state="ready",topic="mail"} 0
dueq_topic_events{state="scheduled",topic="mail"} 1
dueq_topic_events{state="dead",topic="waits"} 0
dueq_topic_events{state="leased",topic="waits"} 0
dueq_topic_events{state="ready",topic="waits"} 1
dueq_topic_events{state="scheduled",topic="waits"} 0
# HELP dueq_up Whether this scrape read the depths of all topics from Redis.
# TYPE dueq_up gauge
dueq_up 1
# HELP dueq_scrape_errors_total Reads from Redis that failed, or took too long, in scrapes.
# TYPE dueq_scrape_errors_total counter
dueq_scrape_errors_total 0
`, "dueq_events_acked_total", "dueq_events_duplicate_total", "dueq_events_published_total",
			"dueq_topic_events", "dueq_up", "dueq_scrape_errors_total")
		text := gather(t, r)
		for _, line := range []string{
			`dueq_event_lateness_seconds_bucket{topic="mail",le="300"} 1`, // of two, the other being 10 min late
			`dueq_event_lateness_seconds_bucket{topic="mail",le="900"} 2`,
			`dueq_event_lateness_seconds_bucket{topic="mail",le="+Inf"} 2`,
			`dueq_event_claim_lateness_seconds_count{topic="mail"} 2`,
			`dueq_handler_duration_seconds_count{topic="mail"} 2`,
			`dueq_publish_batch_events_sum 5`,
			`dueq_settle_batch_events_sum 2`,
			`dueq_redis_call_failures_total{call="publish"} 0`,
			`dueq_topic_oldest_due_age_seconds{topic="mail"} 0`,
			`dueq_topic_paused{topic="mail"} 0`,
			`dueq_topic_moves_total{move="acked",topic="mail"} 2`,
			`dueq_topic_moves_total{move="kept",topic="mail"} 1`,
			`dueq_topic_moves_total{move="expired",topic="waits"} 0`,
			`dueq_topics_omitted 0`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		if line := `dueq_topic_oldest_due_age_seconds{topic="waits"} 6`; !strings.Contains(text, line) { // 60 seconds and a little
			t.Errorf("no line that begins with %s in\n%s", line, text)
		}
	})
}

// A paused topic is seen to be, and a process that has only looked counts nothing.
func TestDepthsOfOthers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		worker, operator := newQueue(t, env.NewClient(), env.Namespace), newQueue(t, env.NewClient(), env.Namespace)
		publish(t, worker, "b", time.Hour)
		publish(t, worker, "a", time.Hour)
		publish(t, worker, "c", time.Hour)
		if err := worker.Pause(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		compare(t, register(t, operator, dueqprom.Options{Depths: true, MaxTopics: 2}), `
# HELP dueq_topic_paused Whether the delivery of a topic is paused.
# TYPE dueq_topic_paused gauge
dueq_topic_paused{topic="a"} 1
dueq_topic_paused{topic="b"} 0
# HELP dueq_topics_omitted Topics without depths, because there are more than MaxTopics.
# TYPE dueq_topics_omitted gauge
dueq_topics_omitted 1
`, "dueq_topic_paused", "dueq_topics_omitted", "dueq_events_published_total")
		text := gather(t, register(t, operator, dueqprom.Options{}))
		if strings.Contains(text, "dueq_topic_") || strings.Contains(text, "dueq_up") {
			t.Errorf("depths that were not asked for:\n%s", text)
		}
	})
}

// A topic that cannot be read is missing, and is counted; the others are there.
func TestDepthsWithoutOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env.NewClient(), env.Namespace)
		for _, topic := range []string{"a", "b", "c"} {
			publish(t, q, topic, time.Hour)
		}
		if err := env.Client.Set(t.Context(), "{"+env.Namespace+":b}:dead", "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		text := gather(t, register(t, q, dueqprom.Options{Depths: true}))
		for _, line := range []string{
			`dueq_topic_events{state="scheduled",topic="a"} 1`, `dueq_topic_events{state="scheduled",topic="c"} 1`,
			"dueq_up 0", "dueq_scrape_errors_total 1",
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		if strings.Contains(text, `dueq_topic_events{state="scheduled",topic="b"}`) {
			t.Errorf("the depth of what cannot be read:\n%s", text)
		}
	})
}

// Without Redis a scrape still has what the process has counted.
func TestScrapeWithoutRedis(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q := newQueue(t, env.NewClient(), env.Namespace)
	publish(t, q, "mail", time.Hour)
	r := register(t, q, dueqprom.Options{Depths: true})
	env.Mini.Close()
	for i, want := range []string{"dueq_scrape_errors_total 1", "dueq_scrape_errors_total 2"} {
		text := gather(t, r)
		for _, line := range []string{`dueq_events_published_total{topic="mail"} 1`, "dueq_up 0", want} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("scrape %d has no line %s:\n%s", i, line, text)
			}
		}
	}
}

// A Redis that hangs does not hold up a scrape for longer than its timeout, nor
// do later scrapes pile up.
func TestScrapeOfHangingRedis(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts nothing, answers nothing
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: l.Addr().String(), ReadTimeout: patience, MaxRetries: -1})
	q, err := dueq.New(rdb, dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := register(t, q, dueqprom.Options{Depths: true, Timeout: 10 * time.Millisecond})
	for _, want := range []string{"dueq_scrape_errors_total 1", "dueq_scrape_errors_total 2"} {
		if text := gather(t, r); !strings.Contains(text, "dueq_up 0\n") || !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if err := errors.Join(l.Close(), rdb.Close()); err != nil { // ends what still waits
		t.Error(err)
	}
}
