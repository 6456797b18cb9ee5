package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// meter tells what a server and this process use up.
type meter interface {
	During(ctx context.Context, do func() error) (measure.Spent, error)
	Close() error
}

// host is a fresh server and its meter.
type host struct {
	server  *measure.Server
	meter   meter
	redis   *measure.Meter // nil: not a Redis, which has no slow log
	version string
}

func startRedis(ctx context.Context) (*host, error) {
	server, err := measure.StartRedis(ctx)
	if err != nil {
		return nil, err
	}
	m := measure.NewMeter(&redis.Options{Addr: server.Addr()})
	h := &host{server: server, meter: m, redis: m}
	info, err := m.Info(ctx, "server")
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.version = "Redis " + info["redis_version"]
	return h, nil
}

func (h *host) close() error {
	var err error
	if h.meter != nil {
		err = h.meter.Close()
	}
	h.server.Kill()
	return err
}

// slowest runs do and tells the slowest command meanwhile, if there is a slow log.
func (h *host) slowest(ctx context.Context, do func() error) (s measure.Slow, ok bool, err error) {
	if h.redis == nil {
		return s, false, do()
	}
	s, err = h.redis.Slowest(ctx, do)
	return s, true, err
}
