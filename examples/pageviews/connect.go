package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

const defaultRedis = "redis://127.0.0.1:6379"

// connect connects to the Redis at url. An empty url, or a server that does not
// answer and need not, makes it start one within this process. Call stop when
// done.
func connect(ctx context.Context, url string, must bool, out io.Writer) (rdb redis.UniversalClient, stop func(), err error) {
	if url != "" {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("parse Redis URL: %w", err)
		}
		err = dial(ctx, opts)
		if err == nil {
			rdb = redis.NewClient(opts)
			return rdb, func() { _ = rdb.Close() }, nil
		}
		if must {
			return nil, nil, fmt.Errorf("reach Redis: %w", err)
		}
	}
	mini, err := miniredis.Run()
	if err != nil {
		return nil, nil, fmt.Errorf("start embedded Redis: %w", err)
	}
	fmt.Fprintln(out, "No Redis: using one within this process. If the process is killed, its counts are lost and the next run begins anew.")
	rdb = redis.NewClient(&redis.Options{Addr: mini.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		mini.Close()
	}, nil
}

// dial tells whether anybody listens, without the patience of a client.
func dial(ctx context.Context, opts *redis.Options) error {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, opts.Network, opts.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
