package subscriber

import (
	"sync"
	"time"

	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/readyqueue"
)

// horizon is how much work, by the pace of the handlers so far, a topic claims
// ahead: enough to bridge a few round trips, too little to hoard.
const horizon = 10 * time.Millisecond

// Topic is one subscription: its handlers and the claimed events that wait for
// one, or its consumer.
type Topic struct {
	s        *Subscriber
	name     string
	handlers []Handler
	metrics  *metric.Topic
	consumer *Consumer // instead of handlers; nil: none

	mu       sync.Mutex
	lanes    []*Lane
	waiting  fifo          // claimed, not started
	running  int           // workers
	starting bool          // one of them has not taken an event yet
	claiming int           // asked for, not yet here
	pace     time.Duration // what a handler takes, a moving average; 0: not known yet
	closed   bool          // nothing is claimed or started any more
}

// ahead is how many events may wait for a handler.
func (t *Topic) ahead() int {
	if t.pace <= 0 {
		return 0
	}
	return int(min(time.Duration(t.s.opts.Concurrency)*horizon/t.pace, readyqueue.MaxBatch))
}

// room is how many more events the handlers would start soon, or the consumer's
// claims ask for.
func (t *Topic) room() int {
	switch {
	case t.closed:
		return 0
	case t.consumer != nil:
		return t.consumer.room()
	}
	return max(0, t.s.opts.Concurrency+t.ahead()-t.running-t.waiting.len()-t.claiming)
}

// reserve takes all room there is for a claim, up to one batch.
func (t *Topic) reserve() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(t.room(), readyqueue.MaxBatch)
	t.claiming += n
	return n
}

// accept queues claimed events for the handlers, of the reserved ones, or hands
// them to the consumer.
func (t *Topic) accept(reserved int, deliveries []*delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claiming -= reserved
	if t.closed {
		t.s.release(deliveries)
		return
	}
	if t.consumer != nil {
		t.consumer.take(deliveries)
	} else {
		t.waiting.push(deliveries)
		t.hire()
	}
	if len(deliveries) < reserved { // other lanes may have found no room meanwhile
		t.feed()
	}
}

// hire starts a worker if events wait and none is starting already: that one
// will start the next. So quick handlers get by with few workers, and slow ones
// have as many as they may soon.
func (t *Topic) hire() {
	if t.starting || t.waiting.len() == 0 || t.running == t.s.opts.Concurrency {
		return
	}
	t.starting = true
	t.running++
	t.s.workers.Go(func() {
		t.mu.Lock()
		t.starting = false
		t.mu.Unlock()
		t.work()
	})
}

// feed makes the lanes that are known to have more claim it.
func (t *Topic) feed() {
	for _, l := range t.lanes {
		if l.backlog.Load() {
			l.kick()
		}
	}
}

// hasRoom reports whether a claim would take anything.
func (t *Topic) hasRoom() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.room() > 0
}

// work handles events until none waits.
func (t *Topic) work() {
	exited := true
	defer func() {
		if exited { // runtime.Goexit ends this worker: another takes its place
			t.s.workers.Go(t.work)
		}
	}()
	var took time.Duration
	for d := t.next(took); d != nil; d = t.next(took) {
		start := time.Now()
		t.handle(d)
		took = time.Since(start)
	}
	exited = false
}

// next takes an event for a worker whose last one took so long (0: it is the
// worker's first), or ends the worker.
func (t *Topic) next(took time.Duration) *delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	if took > 0 {
		if t.pace == 0 {
			t.pace = took
		}
		t.pace = max(1, t.pace+(took-t.pace)/16)
	}
	d := t.waiting.pop()
	if d == nil {
		t.running--
	}
	t.hire()
	if t.room() > t.ahead()/2 {
		t.feed()
	}
	return d
}

// shed takes back the events that have waited since before t0: the handlers are
// slower than they were.
func (t *Topic) shed(t0 time.Time) []*delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	var stuck []*delivery
	for d := t.waiting.peek(); d != nil && d.claimed.Before(t0); d = t.waiting.peek() {
		stuck = append(stuck, t.waiting.pop())
	}
	if len(stuck) > 0 {
		t.pace = max(t.pace, time.Since(t0))
	}
	return stuck
}

// close stops the topic and returns what was not started.
func (t *Topic) close() []*delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.consumer != nil {
		t.consumer.close()
	}
	var rest []*delivery
	for d := t.waiting.pop(); d != nil; d = t.waiting.pop() {
		rest = append(rest, d)
	}
	return rest
}

// fifo is a queue of deliveries.
type fifo struct {
	items []*delivery
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(ds []*delivery) {
	if f.head > 0 && len(f.items)+len(ds) > cap(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, ds...)
}

func (f *fifo) peek() *delivery {
	if f.len() == 0 {
		return nil
	}
	return f.items[f.head]
}

func (f *fifo) pop() *delivery {
	d := f.peek()
	if d == nil {
		return nil
	}
	f.items[f.head] = nil
	f.head++
	if f.len() == 0 {
		f.items, f.head = f.items[:0], 0
	}
	return d
}
