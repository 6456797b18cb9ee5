package census_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
	"github.com/dueq-io/dueq/internal/redistest"
)

// A topic that cannot be counted does not keep others from being.
func TestCount(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, env.NewClient())
		var topics []string
		for n := range 20 {
			topic := fmt.Sprint("t", n)
			topics = append(topics, topic)
			for range n {
				if _, err := q.PublishEvent(t.Context(), topic, nil, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := env.Client.Set(t.Context(), "{"+env.Namespace+":t7}:dead", "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		topics = append(topics, "bad{")
		counts := census.Count(t.Context(), q, topics)
		if len(counts) != len(topics) {
			t.Fatalf("%d counts", len(counts))
		}
		for n, c := range counts {
			switch {
			case c.Name != topics[n]:
				t.Errorf("topic %s in the place of %s", c.Name, topics[n])
			case n == 7 && (c.Err == nil || !strings.Contains(c.Err.Error(), "WRONGTYPE")), n == 20 && !errors.Is(c.Err, dueq.ErrTopicInvalid):
				t.Errorf("topic %s: error %v", c.Name, c.Err)
			case n != 7 && n != 20 && (c.Err != nil || c.Stats.Scheduled != n):
				t.Errorf("topic %s: %d scheduled, %v", c.Name, c.Stats.Scheduled, c.Err)
			}
		}
		if counts := census.Count(t.Context(), q, nil); len(counts) != 0 {
			t.Errorf("no topics: %v", counts)
		}
	})
}

// Topics on a server that hangs do not hold up others for long.
func TestEachPassesWhatHangs(t *testing.T) {
	t.Parallel()
	var topics []string
	for n := range 20 {
		topics = append(topics, fmt.Sprint("hangs", n))
	}
	q, hangs := newHanging(t, append(topics, "well"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	counted := 0
	census.Each(ctx, q, append(topics, "well"), func(i int, s dueq.Stats, err error) {
		if err != nil || s.Scheduled != 1 {
			t.Errorf("topic %d: %d scheduled, %v", i, s.Scheduled, err)
		}
		if i == len(topics) {
			counted = len(hangs.met)
			hangs.end()
		}
	})
	if hangs.end(); counted < 8 {
		t.Errorf("the last topic was counted when %d hung", counted)
	}
}

// What is not counted when the time has ended says so.
func TestCountLate(t *testing.T) {
	t.Parallel()
	q, hangs := newHanging(t, []string{"hangs"})
	defer hangs.end()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs.met
		cancel()
	}()
	counts := census.Count(ctx, q, []string{"hangs"})
	if len(counts) != 1 || counts[0].Name != "hangs" || !errors.Is(counts[0].Err, context.DeadlineExceeded) {
		t.Errorf("%+v", counts)
	}
}

// Topics are audited although others cannot be, but not when Redis is away.
func TestAudit(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		q := newQueue(t, env, rdb)
		asked := ""
		do := func(_ context.Context, topic string) (*dueq.Report, error) {
			asked += topic
			report := &dueq.Report{Topic: topic}
			switch topic {
			case "b":
				return report, io.EOF
			case "c":
				report.Findings = make([]dueq.Finding, 1)
				return report, io.ErrNoProgress
			case "e":
				return report, errors.Join(io.ErrClosedPipe, rdb.Close())
			}
			return report, nil
		}
		reports, err := census.Audit(t.Context(), q, []string{"a", "b", "c", "d", "e", "f", "g"}, do)
		if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrNoProgress) || !errors.Is(err, io.ErrClosedPipe) || asked != "abcde" {
			t.Errorf("asked %q: %v", asked, err)
		}
		reported := ""
		for _, r := range reports {
			reported += r.Topic
		}
		if reported != "acd" {
			t.Errorf("reports of %q", reported)
		}
	})
}

// newHanging is a queue with an event in each of the topics, those of which hang
// whose names begin so.
func newHanging(t *testing.T, topics []string) (*dueq.Queue, *hanging) {
	t.Helper()
	env := redistest.Mini(t)
	publisher := newQueue(t, env, env.NewClient())
	for _, topic := range topics {
		if _, err := publisher.PublishEvent(t.Context(), topic, nil, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	rdb, free := env.NewClient(), make(chan struct{})
	hangs := &hanging{tag: "{" + env.Namespace + ":hangs", met: make(chan struct{}, 100), free: free, end: sync.OnceFunc(func() { close(free) })}
	rdb.AddHook(hangs)
	return newQueue(t, env, rdb), hangs
}

func newQueue(t *testing.T, env *redistest.Env, rdb redis.UniversalClient) *dueq.Queue {
	t.Helper()
	q, err := dueq.New(rdb, dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// hanging is a hook on a client, with which what touches some keys gets no answer
// until it is freed, whatever its ctx.
type hanging struct {
	tag  string // that the keys begin with
	met  chan struct{}
	free <-chan struct{}
	end  func() // frees it
}

func (h *hanging) wait(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()), h.tag) {
			h.met <- struct{}{}
			<-h.free
			return
		}
	}
}

// DialHook is for package redis, as are ProcessHook and ProcessPipelineHook.
func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.wait(cmd)
		return next(ctx, cmd)
	}
}

func (h *hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.wait(cmds...)
		return next(ctx, cmds)
	}
}
