package carrier_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq/carrier"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// Each lane has its turn, one at a time, and what does not add up is logged.
func TestAudit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		core, logs := observer.New(zapcore.WarnLevel)
		c := carrier.New(env.Client, zap.New(core), time.Hour, readyqueue.Retention{})
		var found metric.Topic
		for _, topic := range []string{"sound", "broken", "empty"} {
			l := key.NewLane(env.Namespace, topic, 0, 1, 4)
			c.Lane(l, &found).Start(nil)
			if topic == "empty" {
				continue
			}
			if err := env.Client.HSet(t.Context(), l.Pool, "a", "record").Err(); err != nil {
				t.Fatal(err)
			}
			if topic == "broken" {
				continue
			}
			if err := env.Client.RPush(t.Context(), l.Ready, "a").Err(); err != nil {
				t.Fatal(err)
			}
		}
		due, now := carrier.Audits{}, time.Now()
		audit := func(after time.Duration, want int) {
			t.Helper()
			for range 4 {
				if err := c.Audit(t.Context(), due, now.Add(after)); err != nil {
					t.Fatal(err)
				}
			}
			if n := logs.Len(); n != want {
				t.Errorf("after %v: %d warnings, want %d", after, n, want)
			}
		}
		audit(0, 0) // not at once
		audit(time.Hour, 1)
		audit(time.Hour, 1) // not yet again
		audit(2*time.Hour, 2)
		if n := found.Findings.Load(); n != 2 {
			t.Errorf("%d findings were counted, want one from each of two audits", n)
		}
		for _, entry := range logs.All() {
			fields := entry.ContextMap()
			if fields["topic"] != "broken" || fields["events"] != int64(1) || fields["places"] != int64(0) {
				t.Errorf("logged %q, %v", entry.Message, fields)
			}
		}
	})
}
