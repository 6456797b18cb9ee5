package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	pushSecretEnv   = "DUEQ_PUSH_SECRET"
	pushTimeout     = 30 * time.Second
	pushConcurrency = 16
)

// push is a topic whose events are posted to a URL.
type push struct {
	Topic       string `json:"topic"`
	URL         string `json:"url"`
	Timeout     string `json:"timeout"`
	Concurrency int    `json:"concurrency"`
	MaxAttempts int    `json:"max_attempts"`
	Secret      string `json:"secret"`

	timeout time.Duration
	handler dueq.Handler
}

// readPushes reads what the flags tell of, and prepares it.
func readPushes(flags []string, file string) ([]push, error) {
	var pushes []push
	if file != "" {
		text, err := os.ReadFile(file)
		if err == nil {
			err = envelope.Array(text, &pushes)
		}
		if err != nil {
			return nil, fmt.Errorf("--push-file: %w", err)
		}
	}
	for _, flag := range flags {
		topic, url, ok := strings.Cut(flag, "=")
		if !ok {
			return nil, errors.New("--push is not TOPIC=URL")
		}
		pushes = append(pushes, push{Topic: topic, URL: url})
	}
	seen := make(map[string]bool)
	for i := range pushes {
		p := &pushes[i]
		if err := p.prepare(); err != nil {
			return nil, fmt.Errorf("push of topic %.80q: %w", p.Topic, err)
		}
		if seen[p.Topic] {
			return nil, fmt.Errorf("push of topic %.80q: it is given twice", p.Topic)
		}
		seen[p.Topic] = true
	}
	return pushes, nil
}

func (p *push) prepare() (err error) {
	p.Secret = cmp.Or(p.Secret, os.Getenv(pushSecretEnv))
	p.Concurrency = cmp.Or(p.Concurrency, pushConcurrency)
	p.timeout = pushTimeout
	if p.Timeout != "" {
		if p.timeout, err = time.ParseDuration(p.Timeout); err != nil || p.timeout <= 0 {
			return fmt.Errorf("timeout is %.40q, not a duration as 10s", p.Timeout)
		}
	}
	p.handler, err = dueqhttp.Forward(p.URL, dueqhttp.ForwardOptions{Timeout: p.timeout, Secret: p.Secret})
	return err
}

// shown is what the API shows of it.
func (p *push) shown() dueqhttp.Push {
	return dueqhttp.Push{Topic: p.Topic, URL: p.URL, Timeout: p.timeout, Concurrency: p.Concurrency, Signed: p.Secret != ""}
}

// pusher posts the events of one topic. It has a queue of its own, so that its
// settings are, and the service's queue can hand out the topic's events besides.
type pusher struct {
	q   *dueq.Queue
	rdb redis.UniversalClient
}

// newPusher makes a pusher that does not run yet.
func newPusher(s *server, p *push, opts dueq.Options) (*pusher, error) {
	rdb, err := s.another()
	if err != nil {
		return nil, err
	}
	opts.Concurrency, opts.MaxAttempts = p.Concurrency, p.MaxAttempts
	opts.HandlerTimeout = p.timeout + time.Minute // the request's own timeout comes first, however long it is
	q, err := dueq.New(rdb, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("push of topic %.80q: %w", p.Topic, err), rdb.Close())
	}
	return &pusher{q: q, rdb: rdb}, nil
}

// end lets running requests finish until ctx ends.
func (p *pusher) end(ctx context.Context) error {
	err := p.q.ShutDown(ctx)
	return errors.Join(err, p.rdb.Close())
}
