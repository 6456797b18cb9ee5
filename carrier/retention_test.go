package carrier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq/carrier"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// All lanes are trimmed, however many dead events they have, and each time that
// anything was dropped the log says so once.
func TestTrim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const lanes, excess = 7, 2*readyqueue.MaxBatch + 3
		core, logs := observer.New(zapcore.WarnLevel)
		c := carrier.New(env.Client, zap.New(core), time.Hour, readyqueue.Retention{Age: time.Hour, Limit: 5})
		var dropped metric.Topic
		keys := make([]*key.Lane, lanes)
		for i := range keys {
			keys[i] = key.NewLane(env.Namespace, fmt.Sprint("topic", i), 0, 1, 4)
			c.Lane(keys[i], &dropped).Start(nil)
		}
		now := float64(time.Now().UnixMilli())
		die := func(l *key.Lane, n int, at float64) {
			t.Helper()
			dead, records := make([]redis.Z, n), make([]any, 0, 2*n)
			for i := range n {
				id := fmt.Sprint(at, "/", i)
				dead[i] = redis.Z{Score: at, Member: id}
				records = append(records, id, "record")
			}
			if err := env.Client.ZAdd(t.Context(), l.Dead, dead...).Err(); err != nil {
				t.Fatal(err)
			}
			if err := env.Client.HSet(t.Context(), l.Pool, records...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		die(keys[1], 5, now)
		die(keys[3], 2, now)
		die(keys[3], 4, now-2*3600_000)
		die(keys[5], 5+excess, now)
		for range 2 {
			if err := c.Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []int64{0, 5, 0, 2, 0, 5, 0} {
			if n := env.Client.ZCard(t.Context(), keys[i].Dead).Val(); n != want {
				t.Errorf("topic %d has %d dead events, want %d", i, n, want)
			}
			if n := env.Client.HLen(t.Context(), keys[i].Pool).Val(); n != want {
				t.Errorf("topic %d has %d records, want %d", i, n, want)
			}
		}
		if n := dropped.Dropped.Load(); n != 4+excess {
			t.Errorf("%d dropped events were counted, want %d", n, 4+excess)
		}
		got := map[any]map[string]any{}
		for _, e := range logs.All() {
			fields := e.ContextMap()
			if got[fields["topic"]] != nil || e.Message != "dead events were dropped" {
				t.Errorf("logged %q, %v", e.Message, fields)
			}
			got[fields["topic"]] = fields
		}
		old, many := got["topic3"], got["topic5"]
		if len(got) != 2 || old["too_old"] != int64(4) || old["too_many"] != int64(0) || many["too_old"] != int64(0) || many["too_many"] != int64(excess) {
			t.Errorf("logged %v", got)
		}
	})
}
