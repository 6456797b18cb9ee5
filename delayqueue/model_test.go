package delayqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dueq-io/dueq/delayqueue"
)

// TestModel compares a queue with a sorted slice, one call at a time.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		capacity := rapid.IntRange(0, 12).Draw(rt, "capacity")
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 150).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			m := &model{queue: delayqueue.New[int](capacity), capacity: capacity}
			for i, s := range steps {
				if wrong = m.do(t.Context(), s); wrong != "" {
					wrong = fmt.Sprintf("step %d, %+v: %s", i, s, wrong)
					return
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// step is a call of Enqueue or Dequeue, or time passing.
type step struct {
	Kind  string
	Delay time.Duration // until the item is due, or to let pass
	Wait  time.Duration // until the context of the call ends
}

func drawStep(t *rapid.T) step {
	ms := rapid.Map(rapid.IntRange(-3, 30), func(n int) time.Duration {
		return time.Duration(n) * time.Millisecond
	})
	return step{
		Kind:  rapid.SampledFrom([]string{"enqueue", "enqueue", "dequeue", "pass"}).Draw(t, "kind"),
		Delay: ms.Draw(t, "delay"),
		// never at the instant at which an item comes due
		Wait: max(0, ms.Draw(t, "wait")) + time.Millisecond/2,
	}
}

type model struct {
	queue    *delayqueue.Queue[int]
	capacity int
	items    []modelItem // sorted
	calls    int
}

type modelItem struct {
	id  int
	due time.Time
}

// do takes a step with the queue and with the model, and returns how they
// differ, "" if they do not.
func (m *model) do(ctx context.Context, s step) (wrong string) {
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	start := time.Now()
	switch s.Kind {
	case "enqueue":
		wrong = m.enqueue(ctx, start, s)
	case "dequeue":
		wrong = m.dequeue(ctx, start, s)
	default:
		pass(s.Delay)
	}
	if elapsed := time.Since(start); elapsed%time.Millisecond != 0 {
		pass(time.Millisecond - elapsed%time.Millisecond)
	}
	if n := m.queue.Len(); wrong == "" && n != len(m.items) {
		return fmt.Sprintf("Len = %d, want %d", n, len(m.items))
	}
	return wrong
}

func (m *model) enqueue(ctx context.Context, start time.Time, s step) (wrong string) {
	m.calls++
	item := modelItem{id: m.calls, due: start.Add(s.Delay)}
	err := m.queue.Enqueue(ctx, item.id, item.due)
	var wantErr error
	var wantWait time.Duration
	if m.capacity > 0 && len(m.items) == m.capacity {
		wantErr, wantWait = context.DeadlineExceeded, s.Wait
	} else {
		m.items = append(m.items, item)
		slices.SortStableFunc(m.items, func(a, b modelItem) int { return a.due.Compare(b.due) })
	}
	if waited := time.Since(start); !errors.Is(err, wantErr) || waited != wantWait {
		return fmt.Sprintf("got %v after %v, want %v after %v", err, waited, wantErr, wantWait)
	}
	return ""
}

func (m *model) dequeue(ctx context.Context, start time.Time, s step) (wrong string) {
	id, err := m.queue.Dequeue(ctx)
	wantErr, wantID, wantWait := context.DeadlineExceeded, 0, s.Wait
	if len(m.items) > 0 && m.items[0].due.Sub(start) < s.Wait {
		wantErr, wantID, wantWait = nil, m.items[0].id, max(0, m.items[0].due.Sub(start))
		m.items = m.items[1:]
	}
	if waited := time.Since(start); id != wantID || !errors.Is(err, wantErr) || waited != wantWait {
		return fmt.Sprintf("got %d, %v after %v, want %d, %v after %v",
			id, err, waited, wantID, wantErr, wantWait)
	}
	return ""
}
