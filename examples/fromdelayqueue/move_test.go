package fromdelayqueue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/examples/fromdelayqueue"
	"github.com/dueq-io/dueq/examples/internal/scratch"
)

// old is a delayqueue as its messages lie in Redis: SendScheduleMsg writes a
// string with the body, a hash field with the retries, and a member of pending.
type old struct {
	t      *testing.T
	rdb    *redis.Client
	prefix string
}

func (o *old) message(id string, retries int) {
	o.do("SET", o.prefix+":msg:"+id, "body of "+id)
	o.do("HSET", o.prefix+":retry:cnt", id, retries)
}

func (o *old) do(args ...any) {
	o.t.Helper()
	if err := o.rdb.Do(o.t.Context(), args...).Err(); err != nil {
		o.t.Fatal(err)
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	queue, rdb, closeAll, err := scratch.Open(dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	from := &old{t: t, rdb: rdb, prefix: "dp:example"}
	due := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 600 {
		id := fmt.Sprint("pending ", i)
		from.message(id, 3)
		from.do("ZADD", "dp:example:pending", due.Unix(), id)
	}
	from.do("ZADD", "dp:example:pending", due.Unix(), "expired")
	from.message("unack", 2)
	from.do("ZADD", "dp:example:unack", time.Now().Unix(), "unack")
	from.message("ready", 3)
	from.do("LPUSH", "dp:example:ready", "ready")
	from.message("retry", 0)
	from.do("LPUSH", "dp:example:retry", "retry")

	m := &fromdelayqueue.Mover{Redis: rdb, Prefix: "dp:example", Queue: queue, Topic: "example"}
	for _, want := range []int{603, 0} {
		if n, err := m.Move(t.Context()); err != nil || n != want {
			t.Fatalf("moved %d, want %d: %v", n, want, err)
		}
	}
	stats, err := queue.Stats(t.Context(), "example")
	if err != nil || stats.Scheduled+stats.Ready != 603 {
		t.Errorf("%+v, %v", stats, err)
	}
	for id, attempts := range map[string]int{"pending 599": 4, "unack": 3, "ready": 4, "retry": 1} {
		info, err := queue.Get(t.Context(), "example", id)
		if err != nil {
			t.Fatal(err)
		}
		if string(info.Body) != "body of "+id || info.MaxAttempts != attempts {
			t.Errorf("%s: %+v", id, info)
		}
		if later := attempts == 4 && id != "ready"; info.EffectTime.Equal(due) != later {
			t.Errorf("%s is due at %v", id, info.EffectTime)
		}
	}
}

func TestMoveStops(t *testing.T) {
	t.Parallel()
	queue, rdb, closeAll, err := scratch.Open(dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &fromdelayqueue.Mover{Redis: rdb, Prefix: "dp:example", Queue: queue, Topic: "example"}
	if _, err := m.Move(ctx); err == nil {
		t.Error("moved with a ctx that has ended")
	}
	if id, err := fromdelayqueue.Publish(t.Context(), queue, "hello"); id == "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
