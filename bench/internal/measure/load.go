package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// BodySize is how many bytes a body has.
const BodySize = 128

// Body is that of the i-th event: when it is due (ns), which it is, padding.
func Body(i int, due time.Time) []byte {
	b := make([]byte, BodySize)
	binary.LittleEndian.PutUint64(b, uint64(due.UnixNano()))
	binary.LittleEndian.PutUint64(b[8:], uint64(i))
	return b
}

// ParseBody is [Body] backwards.
func ParseBody(b []byte) (i int, due time.Time, ok bool) {
	if len(b) != BodySize {
		return 0, time.Time{}, false
	}
	ns := binary.LittleEndian.Uint64(b)
	return int(binary.LittleEndian.Uint64(b[8:])), time.Unix(0, int64(ns)), true
}

// Schedule says when the i-th event is due.
type Schedule func(i int) time.Time

// NextHour spreads events over an hour that begins in half of one.
func NextHour(int) time.Time {
	return time.Now().Add(30*time.Minute + rand.N(time.Hour))
}

// Over spreads n events evenly over a span from start on.
func Over(start time.Time, span time.Duration, n int) Schedule {
	return func(i int) time.Time {
		return start.Add(time.Duration(float64(span) * float64(i) / float64(n)))
	}
}

// Spread calls do for 0 to n-1 from some goroutines, until a call fails.
func Spread(ctx context.Context, n, callers int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Pace calls do for 0 to n-1, each at its time, whether or not earlier calls
// have returned. It returns when all have.
func Pace(ctx context.Context, n, rate int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	start := time.Now()
	for sent := 0; sent < n; {
		elapsed := time.Since(start)
		for due := min(int(elapsed.Seconds()*float64(rate))+1, n); sent < due; sent++ {
			i := sent
			wg.Go(func() {
				if err := do(i); err != nil {
					cancel(fmt.Errorf("event %d: %w", i, err))
				}
			})
		}
		next := time.Duration(float64(sent) / float64(rate) * float64(time.Second))
		if Pause(ctx, max(next-elapsed, time.Millisecond)) != nil {
			break
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
