package subscriber

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/coalesce"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/readyqueue"
)

// crowd is from how many waiting settlements on a second batch leaves beside
// the first.
const crowd = 100

// Options say how events are handled. Every field must be set, but for PersistFn
// and Tracer.
type Options struct {
	Concurrency    int // handlers running at once per topic
	Lease          time.Duration
	HandlerTimeout time.Duration
	MaxAttempts    int
	Backoff        func(attempt int, cause error) time.Duration
	PersistFn      PersistFn
	HighWater      int           // most ids in a ready list
	Fallback       time.Duration // how long a wait for a bell lasts at most
	Logger         *zap.Logger
	Batches        *metric.Sizes   // counts the batches of settlements
	Tracer         *tracing.Tracer // makes a span of each delivery
}

// Subscriber holds the subscriptions of one process.
type Subscriber struct {
	rdb     redis.UniversalClient
	opts    Options
	session string
	bells   *bells
	settles *coalesce.Group[*ending]

	handlers context.Context // of all handlers; ends with ErrStopping
	stop     context.CancelCauseFunc
	workers  sync.WaitGroup
	settling context.Context // of settlements; ends when nobody waits for them any more
	giveUp   context.CancelFunc
	resettle sync.WaitGroup // goroutines that try settlements again

	mu     sync.Mutex
	topics []*Topic
	lanes  []*Lane
}

// New returns a subscriber whose leases belong to the given session: a name
// that no other process has.
func New(rdb redis.UniversalClient, session string, opts Options) *Subscriber {
	s := &Subscriber{rdb: rdb, opts: opts, session: session}
	s.bells = newBells(rdb, session, opts.Fallback, opts.Logger)
	s.handlers, s.stop = context.WithCancelCause(context.Background())
	s.settling, s.giveUp = context.WithCancel(context.Background())
	limits := coalesce.Limits{Len: readyqueue.MaxBatch, Size: readyqueue.MaxBatch, Crowd: crowd}
	s.settles = coalesce.New(limits, func(*ending) int { return 1 }, s.settle)
	return s
}

// AddTopic subscribes handlers to a topic; [Topic.AddLane] says where its
// events come from, and metrics counts what becomes of them.
func (s *Subscriber) AddTopic(name string, handlers []Handler, metrics *metric.Topic) *Topic {
	t := &Topic{s: s, name: name, handlers: handlers, metrics: metrics}
	s.add(t)
	return t
}

// AddConsumer makes a consumer of a topic, likewise.
func (s *Subscriber) AddConsumer(name string, metrics *metric.Topic) (*Consumer, *Topic) {
	t := &Topic{s: s, name: name, metrics: metrics}
	t.consumer = &Consumer{topic: t, failures: make(chan struct{}, s.opts.Concurrency)}
	s.add(t)
	return t.consumer, t
}

func (s *Subscriber) add(t *Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics = append(s.topics, t)
}

// AddLane makes a lane one of the topic's. Its events come once a carrier calls
// [Lane.Move]; the lane calls kick when it has room for more, or hears its bell.
func (t *Topic) AddLane(k *key.Lane, kick func()) *Lane {
	l := &Lane{topic: t, s: t.s, key: k, kick: kick, session: t.s.session, leases: make(map[string]*delivery)}
	t.mu.Lock()
	t.lanes = append(t.lanes, l)
	t.mu.Unlock()
	t.s.mu.Lock()
	t.s.lanes = append(t.s.lanes, l)
	t.s.mu.Unlock()
	t.s.bells.add(l)
	return l
}

// Listen listens for bells until ctx ends.
func (s *Subscriber) Listen(ctx context.Context) { s.bells.run(ctx) }

func (s *Subscriber) all() ([]*Topic, []*Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.topics), slices.Clone(s.lanes)
}
