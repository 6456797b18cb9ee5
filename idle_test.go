package dueq_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// faultInfo reads a number from a server's INFO.
func faultInfo(t *testing.T, rdb *redis.Client, field string) int {
	t.Helper()
	info, err := rdb.Info(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("INFO has no %s", field)
	return 0
}

// A process with a hundred idle topics hardly says anything to Redis, and has an
// event in its handler at once all the same.
func TestIdle(t *testing.T) {
	t.Parallel()
	const topics, watch = 100, 5 * time.Second
	env := redistest.Start(t).Env()
	rdb := env.NewClient()
	q := newQueue(t, env, dueq.Options{})
	other := newQueue(t, env, dueq.Options{})
	ran := make(chan time.Time, 1)
	for i := range topics {
		subscribe(t, q, fmt.Sprint("topic", i), dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
			ran <- time.Now()
			return nil
		}))
		publish(t, other, fmt.Sprint("topic", i), "far", time.Now().Add(time.Hour))
	}
	// Settled: a second in which nothing but our own INFO was said.
	for last := 0; ; {
		now := faultInfo(t, rdb, "total_commands_processed")
		if now-last < 8 {
			break
		}
		last = now
		<-time.After(time.Second)
	}

	start, before := time.Now(), faultInfo(t, rdb, "total_commands_processed")
	<-time.After(watch)
	commands := faultInfo(t, rdb, "total_commands_processed") - before
	perSecond := float64(commands) / time.Since(start).Seconds()
	connections := faultInfo(t, rdb, "connected_clients")
	t.Logf("%d idle topics: %.1f commands/s, %d connections", topics, perSecond, connections)
	if perSecond >= 10 {
		t.Errorf("%.1f commands/s from an idle process, want less than 10", perSecond)
	}
	if connections >= 20 {
		t.Errorf("%d connections to the server, want less than 20", connections)
	}

	due := time.Now().Add(3 * time.Millisecond)
	publish(t, other, fmt.Sprint("topic", topics/2), "soon", due)
	late := receive(t, ran).Sub(due)
	t.Logf("an event due in 3 ms was handled %v late", late)
	if late > 20*time.Second { // a signal that is lost costs an hour here
		t.Errorf("an event due in 3 ms was handled %v late", late)
	}
}
