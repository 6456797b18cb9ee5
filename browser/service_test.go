package browser_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

// service is a queue, and a server with its dashboard.
type service struct {
	t   *testing.T
	env *redistest.Env
	q   *dueq.Queue
	url string
}

// serve starts a service on a redis-server of its own.
func serve(t *testing.T, opts dueqhttp.Options) *service {
	t.Helper()
	s := &service{t: t, env: redistest.Start(t).Env()}
	s.q = s.queue()
	h, err := dueqhttp.New(s.q, opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	s.url = server.URL + "/"
	t.Cleanup(func() {
		h.Drain() // which ends the streams that Close would wait for
		server.Close()
	})
	return s
}

// queue is a queue on the service's Redis, such as of another process.
func (s *service) queue() *dueq.Queue {
	s.t.Helper()
	q, err := dueq.New(s.env.NewClient(), dueq.Options{
		Namespace: s.env.Namespace, MaxAttempts: 3,
		Backoff: func(int, error) time.Duration { return 20 * time.Millisecond },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.ShutDown(ctx); err != nil && !errors.Is(err, dueq.ErrShutDown) {
			s.t.Errorf("shut down: %v", err)
		}
	})
	return q
}

// publish publishes an event that is due so long from now.
func (s *service) publish(topic, id, body string, ahead time.Duration, opts ...dueq.PublishOption) {
	s.t.Helper()
	opts = append(opts, dueq.WithID(id))
	if _, err := s.q.PublishEvent(s.t.Context(), topic, []byte(body), time.Now().Add(ahead), opts...); err != nil {
		s.t.Fatal(err)
	}
}

// kill makes an event of a topic that nobody subscribes to dead.
func (s *service) kill(topic, reason string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.publish(topic, id, fmt.Sprintf(`{"payment":%q,"amount":%d.90,"currency":"EUR"}`, id, 20+len(reason)), 0)
	}
	worker := s.queue()
	fails := dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return dueq.SkipRetry(errors.New(reason)) })
	if err := worker.Subscribe(topic, fails); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("all are dead", func() bool { return s.stats(topic).Dead == len(ids) })
	if err := worker.ShutDown(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) stats(topic string) dueq.Stats {
	s.t.Helper()
	stats, err := s.q.Stats(s.t.Context(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	return stats
}

// order is an event of the topic orders.
func (s *service) order(id string) *dueq.EventInfo {
	s.t.Helper()
	info, err := s.q.Get(s.t.Context(), "orders", id)
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// eventually polls until ok.
func (s *service) eventually(what string, ok func() bool) {
	s.t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end:
			s.t.Fatalf("it never came to this: %s", what)
		case <-tick.C:
		}
	}
}

// shop fills the queue with what a shop might have in it, and keeps it busy
// until the test ends.
func (s *service) shop() {
	s.t.Helper()
	s.fill("order.close", 420, func(i int) time.Duration {
		return time.Duration(rand.ExpFloat64()*18*float64(time.Minute)) + time.Duration(i%7)*time.Second
	}, func(i int) string {
		return fmt.Sprintf(`{"order":%d,"customer":"c-%04d","total":%.2f,"currency":"EUR","items":[{"sku":"A-%d","n":%d}],"express":%t}`,
			48_100+i, rand.IntN(9999), 5+rand.Float64()*120, rand.IntN(900), 1+i%3, i%4 == 0)
	})
	s.fill("webhook.retry", 64, func(int) time.Duration { return rand.N(10 * time.Minute) }, func(i int) string {
		return fmt.Sprintf(`{"url":"https://example.com/hooks/%d","payload":{"event":"paid","order":%d}}`, i%9, 48_000+i)
	})
	s.fill("mail.reminder", 1_830, func(int) time.Duration { return rand.N(72 * time.Hour) }, func(i int) string {
		return fmt.Sprintf(`{"to":"user%d@example.com","template":"cart-waiting"}`, i)
	})
	s.fill("report.nightly", 3, func(i int) time.Duration { return time.Duration(i)*24*time.Hour + 5*time.Hour }, func(int) string { return "run" })
	s.kill("payment.capture", "capture: dial tcp 10.0.4.12:8443: connect: connection refused",
		"cap-7f31", "cap-7f38", "cap-8022", "cap-81aa", "cap-8c05")
	if err := s.q.Pause(s.t.Context(), "invoice.export"); err != nil {
		s.t.Fatal(err)
	}
	s.fill("invoice.export", 14, func(i int) time.Duration { return -time.Duration(i) * time.Minute }, func(i int) string {
		return fmt.Sprintf(`{"invoice":"2026-%04d","format":"pdf"}`, 310+i)
	})
	first, second := s.queue(), s.queue()
	s.busy(first, "counter.flush", 40*time.Millisecond, 20*time.Millisecond, nil)
	s.busy(first, "order.close", 300*time.Millisecond, 50*time.Millisecond, nil)
	s.busy(second, "webhook.retry", 120*time.Millisecond, 900*time.Millisecond,
		errors.New("POST https://example.com/hooks/3: 503 Service Unavailable"))
}

func (s *service) fill(topic string, n int, ahead func(i int) time.Duration, body func(i int) string) {
	s.t.Helper()
	all := make([]dueq.NewEvent, n)
	for i := range all {
		all[i] = dueq.NewEvent{Body: []byte(body(i)), EffectTime: time.Now().Add(time.Minute/2 + ahead(i))}
	}
	if _, err := s.q.PublishEvents(s.t.Context(), topic, all); err != nil {
		s.t.Fatal(err)
	}
}

// busy has events of a topic published about so often, and handled by a worker
// within some time; a tenth of the attempts fails, if there is a reason.
func (s *service) busy(worker *dueq.Queue, topic string, every, takes time.Duration, reason error) {
	s.t.Helper()
	err := worker.Subscribe(topic, dueq.HandlerFunc(func(ctx context.Context, _ *dueq.Event) error {
		select {
		case <-time.After(rand.N(takes)):
		case <-ctx.Done():
		}
		if reason != nil && rand.IntN(10) == 0 {
			return reason
		}
		return nil
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			wave := 1 + 0.7*float64(n%200)/200 // so that charts have something to show
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(float64(rand.N(2*every)) * wave)):
			}
			body := fmt.Appendf(nil, `{"n":%d}`, n)
			if _, err := s.q.PublishEvent(ctx, topic, body, time.Now().Add(rand.N(4*time.Second))); err != nil && ctx.Err() == nil {
				s.t.Errorf("publish: %v", err)
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// nothing is a handler that does nothing.
func nothing(context.Context, *dueq.Event) error { return nil }
