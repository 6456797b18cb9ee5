package dueq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/readyqueue"
)

// State is where an event lies.
type State string

// The states of an event.
const (
	StateScheduled State = "scheduled" // in a bucket, until it is due or its retry is
	StateReady     State = "ready"     // due, and nobody has it yet
	StateLeased    State = "leased"    // a process has it
	StateDead      State = "dead"      // it has failed for good
)

// EventInfo is an event as it lies in Redis.
type EventInfo struct {
	ID          string
	Topic       string
	Body        []byte
	BodySize    int // of the whole body, where Body is only its beginning
	EffectTime  time.Time
	Metadata    map[string]string
	State       State
	Due         time.Time // if scheduled: when it, or its retry, is due
	DiedAt      time.Time // if dead
	Attempts    int       // that are used up
	MaxAttempts int       // 0: what the delivering queue is set to
	LastError   string    // of the last attempt; at most 4 KiB
}

// Stats count a topic's events. Counters begin with the topic.
type Stats struct {
	Scheduled int       // waiting for their time, or for a retry, or due and yet to be moved to the ready ones
	Ready     int       // due and next, and no live process has them
	Leased    int       // held by live sessions
	Dead      int       // failed for good
	OldestDue time.Time // effect time of the oldest event that is due and that nobody has; zero: there is none
	Paused    bool      // see [Queue.Pause]
	Lateness  Histogram // of first deliveries in all processes, some seconds old: see TopicMetrics.Lateness

	Published   int // stored, replacing included
	Kept        int // publishes that found their key and kept it
	Duplicates  int // publishes that found their key and were refused
	Delivered   int // leases given out
	Acked       int // handled, or taken by PersistFn
	Retried     int // scheduled again after a failure
	Released    int // given back unhandled
	Expired     int // taken back from sessions that died
	Buried      int // put among the dead
	Dropped     int // dead, and forgotten for their age or number
	Cancelled   int // forgotten by Cancel or Purge
	Rescheduled int
}

// Cancel forgets an event that nobody is handling, dead or alive. Its error
// wraps [ErrNotFound], [ErrLeased], [ErrOutcomeUnknown], or why Redis refused.
func (q *Queue) Cancel(ctx context.Context, topic, id string) error {
	err := q.find(ctx, topic, id, func(l *key.Lane) error { return bucket.Cancel(ctx, q.rdb, l, id) })
	if err == nil {
		q.topicMetrics(topic).Cancelled.Add(1)
	}
	return err
}

// Reschedule gives an event that nobody is handling a new effect time; one that
// was dead starts anew. Its errors are those of [Queue.Cancel], and
// [ErrEventInvalid] for the time.
func (q *Queue) Reschedule(ctx context.Context, topic, id string, effectTime time.Time) error {
	return q.retime(ctx, "reschedule", topic, id, effectTime, bucket.Reschedule)
}

// RequeueEvent gives a dead event a new life, due at effectTime; one that is not
// dead stays as it is. Its error wraps [ErrNotFound], [ErrNotDead],
// [ErrEventInvalid] for the time, [ErrOutcomeUnknown], or why Redis refused.
func (q *Queue) RequeueEvent(ctx context.Context, topic, id string, effectTime time.Time) error {
	return q.retime(ctx, "requeue", topic, id, effectTime, bucket.RequeueOne)
}

// retime gives an event a new effect time by what move does.
func (q *Queue) retime(ctx context.Context, verb, topic, id string, effectTime time.Time,
	move func(context.Context, redis.UniversalClient, *key.Lane, string, int64) error,
) error {
	if err := checkTime(effectTime, time.Now()); err != nil {
		return fmt.Errorf("%w: %s id %.80q in topic %.80q: %w", ErrEventInvalid, verb, id, topic, err)
	}
	due := millis(effectTime)
	err := q.find(ctx, topic, id, func(l *key.Lane) error { return move(ctx, q.rdb, l, id, due) })
	if err == nil {
		q.topicMetrics(topic).Rescheduled.Add(1)
	}
	return err
}

// Get tells what and where an event is. Its error wraps [ErrNotFound], or why
// Redis refused.
func (q *Queue) Get(ctx context.Context, topic, id string) (*EventInfo, error) {
	var info *EventInfo
	err := q.find(ctx, topic, id, func(l *key.Lane) error {
		place, err := inspect.Get(ctx, q.rdb, l, id)
		if err == nil && place.State == "" {
			err = fmt.Errorf("get id %q in topic %q: %w", id, topic, ErrNotFound)
		}
		if err != nil {
			return err
		}
		info = newEventInfo(topic, id, place)
		return nil
	})
	return info, err
}

func newEventInfo(topic, id string, p inspect.Place) *EventInfo {
	attempts := readyqueue.ParseAttempts(p.Attempts)
	info := &EventInfo{ID: id, Topic: topic, State: State(p.State), Attempts: attempts.Count, LastError: attempts.Cause}
	if record, err := pool.Decode(p.Record); err == nil {
		info.Body, info.Metadata, info.MaxAttempts = record.Body, record.Metadata, record.MaxAttempts
		info.EffectTime = time.UnixMilli(record.EffectTime)
	} else { // shown as it lies there
		info.Body = []byte(p.Record)
	}
	info.BodySize = len(info.Body)
	switch info.State {
	case StateScheduled:
		info.Due = time.UnixMilli(p.At)
	case StateDead:
		info.DiedAt = time.UnixMilli(p.At)
	}
	return info
}

// find calls do with the lane in which id should lie, and if it is not there,
// with those of other partition counts that the topic has had.
func (q *Queue) find(ctx context.Context, name, id string, do func(*key.Lane) error) error {
	if err := checkTopic(name); err != nil {
		return err
	}
	if err := key.CheckID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrIDInvalid, err)
	}
	lanes, err := q.homes(name, id, []int{q.opts.Partitions})
	if err != nil {
		return err
	}
	if err = do(lanes[0]); !errors.Is(err, ErrNotFound) {
		return wrap(err)
	}
	counts, lookupErr := q.partitionCounts(ctx, name)
	if lookupErr != nil {
		return lookupErr
	}
	lanes, lookupErr = q.homes(name, id, counts)
	if lookupErr != nil {
		return lookupErr
	}
	for i, l := range lanes {
		if counts[i] == q.opts.Partitions {
			continue
		}
		if err = do(l); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return wrap(err)
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("dueq: %w", err)
	}
	return nil
}

// homes are the lanes in which id lies under the given partition counts.
func (q *Queue) homes(name, id string, counts []int) ([]*key.Lane, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrShutDown
	}
	t := q.topics[name]
	if t == nil {
		t = q.newTopic(name)
	}
	lanes := make([]*key.Lane, len(counts))
	for i, n := range counts {
		lanes[i] = q.addLanes(t, n)[key.Partition(id, n)]
	}
	return lanes, nil
}

// Stats counts a topic's events. A topic that was never used counts nothing.
func (q *Queue) Stats(ctx context.Context, topic string) (Stats, error) {
	var sum Stats
	lanes, err := q.usedLanes(ctx, topic)
	if err != nil {
		return sum, err
	}
	for _, l := range lanes {
		c, err := inspect.Count(ctx, q.rdb, l)
		if err != nil {
			return Stats{}, fmt.Errorf("dueq: %w", err)
		}
		sum.add(c)
	}
	return sum, nil
}

func (s *Stats) add(c inspect.Counts) {
	s.Scheduled += int(c.Scheduled)
	s.Ready += int(c.Ready)
	s.Leased += int(c.Leased)
	s.Dead += int(c.Dead)
	s.Paused = s.Paused || c.Paused
	if due := time.UnixMilli(c.OldestDue); c.OldestDue != 0 && (s.OldestDue.IsZero() || due.Before(s.OldestDue)) {
		s.OldestDue = due
	}
	for name, field := range map[string]*int{
		"published": &s.Published, "kept": &s.Kept, "duplicates": &s.Duplicates, "delivered": &s.Delivered,
		"acked": &s.Acked, "retried": &s.Retried, "released": &s.Released, "expired": &s.Expired,
		"buried": &s.Buried, "dropped": &s.Dropped, "cancelled": &s.Cancelled, "rescheduled": &s.Rescheduled,
	} {
		*field += int(c.Counters[name])
	}
	s.Lateness.addLateness(c.Counters)
}
