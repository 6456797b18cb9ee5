package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// badNames are no topics and no ids.
func badNames(most int) map[string]string {
	return map[string]string{
		"empty":           "",
		"too long":        strings.Repeat("x", most+1),
		"too long, UTF-8": strings.Repeat("ä", most/2+1),
		"open brace":      "a{b",
		"close brace":     "a}b",
		"line feed":       "a\nb",
		"zero":            "a\x00",
		"delete":          "a\x7f",
		"C1 control":      "a\u0085",
		"invalid UTF-8":   "a\xff",
		"half a rune":     "ä"[:1],
	}
}

// wrote returns what a test has in Redis.
func wrote(t *testing.T, env *redistest.Env) []string {
	t.Helper()
	var keys []string
	for _, pattern := range []string{env.Namespace + ":*", "{" + env.Namespace + ":*"} {
		some, err := env.Client.Keys(t.Context(), pattern).Result()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, some...)
	}
	slices.Sort(keys)
	return keys
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}) // never dialled
	t.Cleanup(func() { _ = rdb.Close() })
	for name, opts := range map[string]dueq.Options{
		"Buckets -1":              {Buckets: -1},
		"Buckets 1025":            {Buckets: 1025},
		"Partitions -1":           {Partitions: -1},
		"Partitions 65":           {Partitions: 65},
		"Concurrency -1":          {Concurrency: -1},
		"Concurrency 100001":      {Concurrency: 100_001},
		"Lease -1s":               {Lease: -time.Second},
		"Lease 1ns":               {Lease: 1},
		"Lease 99ms":              {Lease: 99 * time.Millisecond},
		"Lease 25h":               {Lease: 25 * time.Hour},
		"HandlerTimeout -1":       {HandlerTimeout: -1},
		"HandlerTimeout 1ns":      {HandlerTimeout: 1},
		"HandlerTimeout for ever": {HandlerTimeout: math.MaxInt64},
		"MaxAttempts -1":          {MaxAttempts: -1},
		"MaxAttempts 1<<40":       {MaxAttempts: 1 << 40},
		"DeadRetention -1":        {DeadRetention: -1},
		"DeadRetention 1ms":       {DeadRetention: time.Millisecond},
		"DeadRetention for ever":  {DeadRetention: math.MaxInt64},
		"DeadLimit -1":            {DeadLimit: -1},
		"MaxBody -1":              {MaxBody: -1},
		"MaxBody 1 GiB":           {MaxBody: 1 << 30},
		"Fallback -1":             {Fallback: -1},
		"Fallback 1ms":            {Fallback: time.Millisecond},
		"Fallback 2h":             {Fallback: 2 * time.Hour},
		"ShutdownTimeout -1":      {ShutdownTimeout: -1},
		"ShutdownTimeout 1ns":     {ShutdownTimeout: 1},
		"ShutdownTimeout 100h":    {ShutdownTimeout: 100 * time.Hour},
	} {
		q, err := dueq.New(rdb, opts)
		option, _, _ := strings.Cut(name, " ")
		if q != nil || !errors.Is(err, dueq.ErrOptionsInvalid) || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v, %v", name, q, err)
		}
	}
	names := badNames(64)
	delete(names, "empty") // the default
	names["colon"] = "a:b"
	for what, namespace := range names {
		if q, err := dueq.New(rdb, dueq.Options{Namespace: namespace}); q != nil || !errors.Is(err, dueq.ErrOptionsInvalid) {
			t.Errorf("namespace, %s: %v, %v", what, q, err)
		}
	}
	if _, err := dueq.New(rdb, dueq.Options{Buckets: -1, Fallback: 1}); err == nil ||
		!strings.Contains(err.Error(), "Buckets") || !strings.Contains(err.Error(), "Fallback") {
		t.Errorf("two bad options: %v", err)
	}
	for name, client := range map[string]redis.UniversalClient{
		"nil":         nil,
		"nil client":  (*redis.Client)(nil),
		"nil cluster": (*redis.ClusterClient)(nil),
		"nil ring":    (*redis.Ring)(nil),
	} {
		if q, err := dueq.New(client, dueq.Options{}); q != nil || !errors.Is(err, dueq.ErrOptionsInvalid) {
			t.Errorf("%s: %v, %v", name, q, err)
		}
	}
	for name, opts := range map[string]dueq.Options{
		"default": {},
		"least": {
			Namespace: "x", Buckets: 1, Partitions: 1, Concurrency: 1, Lease: 100 * time.Millisecond, HandlerTimeout: time.Millisecond,
			MaxAttempts: 1, DeadRetention: time.Second, DeadLimit: 1, MaxBody: 1, Fallback: 100 * time.Millisecond, ShutdownTimeout: time.Millisecond,
		},
		"most": {
			Namespace: strings.Repeat("x", 64), Buckets: 1024, Partitions: 64, Concurrency: 100_000, Lease: 24 * time.Hour,
			HandlerTimeout: 10 * 365 * 24 * time.Hour, MaxAttempts: 1 << 20,
			DeadRetention: 100 * 365 * 24 * time.Hour, DeadLimit: 1_000_000_000, MaxBody: 256 << 20, Fallback: time.Hour, ShutdownTimeout: 24 * time.Hour,
		},
	} {
		q, err := dueq.New(rdb, opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := q.ShutDown(t.Context()); err != nil { // of a queue that was never used
			t.Errorf("%s: ShutDown: %v", name, err)
		}
	}
}

// Nothing of what is refused reaches Redis.
func TestBadTopics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		names := badNames(255)
		names["partition"], names["partition 2"], names["slash 5"] = "a/0", "a/b/17", "/5"
		names["long number"] = "a/123456789012345678901234567890"
		for what, name := range names {
			_, publishErr := q.PublishEvent(t.Context(), name, nil, past())
			_, publishesErr := q.PublishEvents(t.Context(), name, []dueq.NewEvent{{EffectTime: past()}})
			_, getErr := q.Get(t.Context(), name, "id")
			_, statsErr := q.Stats(t.Context(), name)
			for verb, err := range map[string]error{
				"publish": publishErr, "publish events": publishesErr, "get": getErr, "stats": statsErr,
				"subscribe":  q.Subscribe(name, seen(nil)),
				"cancel":     q.Cancel(t.Context(), name, "id"),
				"reschedule": q.Reschedule(t.Context(), name, "id", past()),
			} {
				if !errors.Is(err, dueq.ErrTopicInvalid) {
					t.Errorf("%s, %s: %v", what, verb, err)
				}
			}
		}
		if keys := wrote(t, env); len(keys) > 0 {
			t.Errorf("wrote %q", keys)
		}
	})
}

func TestBadIDs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		for what, id := range badNames(1024) {
			_, publishErr := q.PublishEvent(t.Context(), topic, nil, past(), dueq.WithID(id))
			_, getErr := q.Get(t.Context(), topic, id)
			errs := map[string]error{
				"publish": publishErr, "get": getErr,
				"cancel":     q.Cancel(t.Context(), topic, id),
				"reschedule": q.Reschedule(t.Context(), topic, id, past()),
			}
			if id != "" { // in a NewEvent it means a random one
				_, errs["publish events"] = q.PublishEvents(t.Context(), topic, []dueq.NewEvent{{EffectTime: past(), ID: id}})
			}
			for verb, err := range errs {
				if !errors.Is(err, dueq.ErrIDInvalid) {
					t.Errorf("%s, %s: %v", what, verb, err)
				}
			}
		}
		if keys := wrote(t, env); len(keys) > 0 {
			t.Errorf("wrote %q", keys)
		}
		longest := strings.Repeat("ä", 512)
		if id := publish(t, q, topic, "x", past(), dueq.WithID(longest)); id != longest {
			t.Errorf("id %q", id)
		}
	})
}

func TestBadEvents(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxBody: 100})
		now := time.Now()
		for what, c := range map[string]struct {
			event dueq.NewEvent
			want  error
		}{
			"no effect time":       {dueq.NewEvent{}, dueq.ErrEventInvalid},
			"200 years ahead":      {dueq.NewEvent{EffectTime: now.AddDate(200, 0, 0)}, dueq.ErrEventInvalid},
			"year 100,000":         {dueq.NewEvent{EffectTime: time.Date(100_000, 1, 1, 0, 0, 0, 0, time.UTC)}, dueq.ErrEventInvalid},
			"end of time":          {dueq.NewEvent{EffectTime: time.Unix(1<<62, 0)}, dueq.ErrEventInvalid},
			"body too large":       {dueq.NewEvent{EffectTime: now, Body: make([]byte, 101)}, dueq.ErrBodyTooLarge},
			"MaxAttempts -1":       {dueq.NewEvent{EffectTime: now, MaxAttempts: -1}, dueq.ErrEventInvalid},
			"MaxAttempts 1<<40":    {dueq.NewEvent{EffectTime: now, MaxAttempts: 1 << 40}, dueq.ErrEventInvalid},
			"policy -1":            {dueq.NewEvent{EffectTime: now, ID: "x", KeyPolicy: -1}, dueq.ErrEventInvalid},
			"policy 3":             {dueq.NewEvent{EffectTime: now, ID: "x", KeyPolicy: 3}, dueq.ErrEventInvalid},
			"policy without id":    {dueq.NewEvent{EffectTime: now, KeyPolicy: dueq.KeyKeep}, dueq.ErrEventInvalid},
			"metadata name":        {dueq.NewEvent{EffectTime: now, Metadata: map[string]string{"\xff": ""}}, dueq.ErrEventInvalid},
			"metadata value":       {dueq.NewEvent{EffectTime: now, Metadata: map[string]string{"": "\xff"}}, dueq.ErrEventInvalid},
			"metadata of 17 KiB":   {dueq.NewEvent{EffectTime: now, Metadata: map[string]string{"x": strings.Repeat("x", 17<<10)}}, dueq.ErrEventInvalid},
			"id with a brace":      {dueq.NewEvent{EffectTime: now, ID: "{"}, dueq.ErrIDInvalid},
			"zero time in a zone":  {dueq.NewEvent{EffectTime: time.Time{}.In(time.FixedZone("", 3600))}, dueq.ErrEventInvalid},
			"100 years and a bit":  {dueq.NewEvent{EffectTime: now.Add(100*365*24*time.Hour + time.Minute)}, dueq.ErrEventInvalid},
			"metadata of 16 KiB+1": {dueq.NewEvent{EffectTime: now, Metadata: map[string]string{"x": strings.Repeat("x", 16<<10)}}, dueq.ErrEventInvalid},
		} {
			e := c.event
			opts := []dueq.PublishOption{dueq.WithKeyPolicy(e.KeyPolicy), dueq.WithMetadata(e.Metadata)}
			if e.ID != "" {
				opts = append(opts, dueq.WithID(e.ID))
			}
			if e.MaxAttempts != 0 {
				opts = append(opts, dueq.WithMaxAttempts(e.MaxAttempts))
			}
			if id, err := q.PublishEvent(t.Context(), topic, e.Body, e.EffectTime, opts...); !errors.Is(err, c.want) || id != "" {
				t.Errorf("%s: publish = %q, %v", what, id, err)
			}
			events := []dueq.NewEvent{{EffectTime: now}, {EffectTime: now}, e, {EffectTime: now}}
			ids, err := q.PublishEvents(t.Context(), topic, events)
			if !errors.Is(err, c.want) || ids != nil || !strings.Contains(err.Error(), "event 2") {
				t.Errorf("%s: publish events = %q, %v", what, ids, err)
			}
		}
		for _, n := range []int{0, -1, 1 << 40} {
			if _, err := q.PublishEvent(t.Context(), topic, nil, now, dueq.WithMaxAttempts(n)); !errors.Is(err, dueq.ErrEventInvalid) {
				t.Errorf("publish with %d attempts = %v", n, err)
			}
		}
		for _, due := range []time.Time{{}, now.AddDate(200, 0, 0)} {
			if err := q.Reschedule(t.Context(), topic, "x", due); !errors.Is(err, dueq.ErrEventInvalid) {
				t.Errorf("reschedule to %v = %v", due, err)
			}
		}
		if keys := wrote(t, env); len(keys) > 0 {
			t.Errorf("wrote %q", keys)
		}
		publish(t, q, topic, strings.Repeat("x", 100), now, nil) // a nil option changes nothing
		publish(t, q, topic, "", now.AddDate(99, 0, 0))
		publish(t, q, topic, "", now, dueq.WithMetadata(map[string]string{"": "", "x": strings.Repeat("x", 16<<10-1)}))
	})
}

func TestBadSubscriptions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		ok := make(seen, 10)
		many := slices.Repeat([]dueq.Handler{ok}, 65)
		for what, handlers := range map[string][]dueq.Handler{
			"none": nil, "nil": {nil}, "nil among others": {ok, nil}, "nil HandlerFunc": {ok, dueq.HandlerFunc(nil)}, "65": many,
		} {
			if err := q.Subscribe(topic, handlers...); !errors.Is(err, dueq.ErrSubscription) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if keys := wrote(t, env); len(keys) > 0 {
			t.Errorf("wrote %q", keys)
		}
		subscribe(t, q, topic, ok)
		if err := q.Subscribe(topic, ok); !errors.Is(err, dueq.ErrSubscription) {
			t.Errorf("twice: %v", err)
		}
		publish(t, q, topic, "x", past())
		receive(t, ok)
		awaitEmpty(t, q, topic)
		if len(ok) > 0 {
			t.Error("delivered twice")
		}
		subscribe(t, q, "other", many[:64]...)
	})
}

// A handler may be a nil pointer whose method copes with that.
type nilHandler struct{ calls chan struct{} }

func (h *nilHandler) HandleEvent(context.Context, *dueq.Event) error {
	close(h.calls) // panics
	return nil
}

func TestHandlerThatIsANilPointer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 1})
		subscribe(t, q, topic, (*nilHandler)(nil))
		id := publish(t, q, topic, "x", past())
		if info := awaitState(t, q, topic, id, dueq.StateDead); !strings.Contains(info.LastError, "nil pointer") {
			t.Errorf("last error %q", info.LastError)
		}
	})
}

func TestAfterShutDown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		used, unused := newQueue(t, env, dueq.Options{}), newQueue(t, env, dueq.Options{})
		subscribe(t, used, "used", make(seen, 10))
		publish(t, used, "used", "x", past())
		awaitEmpty(t, used, "used")
		shutDown(t, used)
		shutDown(t, unused)
		before := wrote(t, env)
		for _, q := range []*dueq.Queue{used, unused} {
			for _, name := range []string{"used", "new"} {
				_, publishErr := q.PublishEvent(t.Context(), name, nil, past())
				_, publishesErr := q.PublishEvents(t.Context(), name, []dueq.NewEvent{{EffectTime: past()}})
				_, getErr := q.Get(t.Context(), name, "id")
				_, statsErr := q.Stats(t.Context(), name)
				_, topicsErr := q.Topics(t.Context())
				for verb, err := range map[string]error{
					"publish": publishErr, "publish events": publishesErr, "get": getErr, "stats": statsErr, "topics": topicsErr,
					"subscribe":  q.Subscribe(name, make(seen, 10)),
					"cancel":     q.Cancel(t.Context(), name, "id"),
					"reschedule": q.Reschedule(t.Context(), name, "id", past()),
					"ShutDown":   q.ShutDown(t.Context()),
					"Run":        q.Run(t.Context()),
				} {
					if !errors.Is(err, dueq.ErrShutDown) {
						t.Errorf("%s, topic %s: %v", verb, name, err)
					}
				}
			}
		}
		if after := wrote(t, env); !slices.Equal(before, after) {
			t.Errorf("wrote %q, had %q", after, before)
		}
	})
}

// What lies in the pool and cannot be read goes to dead, with the reason, and
// stops nobody; it can be looked at, tried again, and cancelled.
func TestUnreadableRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		q := newQueue(t, env, dueq.Options{PersistFn: func(_ context.Context, e *dueq.Event, _ error) error {
			t.Errorf("PersistFn got %+v", e)
			return nil
		}})
		records := []string{
			"", "\n", "no newline", "{\"v\":1,\"at\":5}", "{}\nx", "[]\nx", "null\nx", "{\"v\":2,\"at\":5}\nx", "{\"v\":1,\"at\":\"5\"}\nx",
			"{\"v\":1,\"at\":5\nx", "{\"v\":1,\"at\":1e400}\nx", strings.Repeat("[", 100_000) + "\n", "\xff\xfe\n",
		}
		for i, record := range records {
			id := fmt.Sprint("bad ", i)
			if err := env.Client.HSet(t.Context(), lane.Pool, id, record).Err(); err != nil {
				t.Fatal(err)
			}
			if err := env.Client.RPush(t.Context(), lane.Ready, id).Err(); err != nil {
				t.Fatal(err)
			}
		}
		good := publish(t, q, topic, "good", past())
		got := make(seen, 10)
		subscribe(t, q, topic, got)
		if e := receive(t, got); e.ID != good {
			t.Errorf("delivered %+v", e)
		}
		awaitGone(t, q, topic, good)
		conserved(t, env, topic)
		for i, record := range records {
			id := fmt.Sprint("bad ", i)
			info := awaitState(t, q, topic, id, dueq.StateDead)
			if string(info.Body) != record || !strings.Contains(info.LastError, "unreadable record") || info.Attempts != 0 {
				t.Errorf("record %.50q: %.50q, last error %.200q, %d attempts", record, info.Body, info.LastError, info.Attempts)
			}
			reschedule(t, q, id, past())
			eventually(t, "buried again", func() bool { return stats(t, q, topic).Buried == len(records)+i+1 })
			if err := q.Cancel(t.Context(), topic, id); err != nil {
				t.Error(err)
			}
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}

// An id without a record is dropped and stops nobody.
func TestIDsWithoutRecord(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		q := newQueue(t, env, dueq.Options{})
		for _, id := range []string{"first", "second"} {
			if err := env.Client.RPush(t.Context(), lane.Ready, id).Err(); err != nil {
				t.Fatal(err)
			}
		}
		good := publish(t, q, topic, "good", past())
		if err := env.Client.RPush(t.Context(), lane.Ready, "last").Err(); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.ZAdd(t.Context(), lane.Bucket(3), redis.Z{Member: "of a bucket"}).Err(); err != nil {
			t.Fatal(err)
		}
		got := make(seen, 10)
		subscribe(t, q, topic, got)
		if e := receive(t, got); e.ID != good {
			t.Errorf("delivered %+v", e)
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}
