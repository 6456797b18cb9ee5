package carrier_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/carrier"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// farOff is a mover that finds nothing due and one event an hour off.
type farOff chan struct{}

func (m farOff) Move(context.Context, []int) (readyqueue.Claimed, bool, error) {
	m <- struct{}{}
	now := time.Now()
	far := readyqueue.Head{Due: now.Add(time.Hour).UnixMilli()}
	return readyqueue.Claimed{Now: now.UnixMicro(), Heads: []readyqueue.Head{far}}, false, nil
}

// However often a lane is looked at, the alarm for what is far off is set once.
func TestAlarmsDoNotPileUp(t *testing.T) {
	const turns = 100_000
	c := carrier.New(redistest.Mini(t).Client, zap.NewNop(), time.Hour, readyqueue.Retention{})
	moved := make(farOff)
	l := c.Lane(key.NewLane("ns", "a", 0, 1, 16), new(metric.Topic))
	l.Start(moved)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		go func() { // a turn may be under way
			for range moved {
			}
		}()
		running.Wait()
		close(moved)
	})

	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	look := func() {
		l.Kick()
		<-moved
	}
	for range 1000 {
		look()
	}
	before := heap()
	for range turns {
		look()
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d turns have left %d bytes behind", turns, after-before)
	}
}
