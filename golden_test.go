package dueq_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/readyqueue"
)

// golden is what version 1 of the format looks like in Redis: commands that
// redis-cli understands, one a line, for the namespace v1. It stays as it is for
// as long as version 1 can be read.
const golden = "testdata/v1/commands.txt"

var update = flag.Bool("update", false, "write the golden dump of the format anew")

// goldenStart is when the golden dump was made, by its server's clock.
var goldenStart = time.Date(2025, time.January, 2, 3, 4, 5, 678_000_000, time.UTC)

// goldenFar is when its last event is due.
var goldenFar = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// goldenBody is a body of all bytes.
func goldenBody() []byte {
	body := make([]byte, 256)
	for i := range body {
		body[i] = byte(i)
	}
	return body
}

// TestGoldenIsUpToDate fails when the format has changed. If it was meant to,
// write testdata/v2 beside what there is, and keep reading version 1.
func TestGoldenIsUpToDate(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	env.Namespace = "v1"
	env.Mini.SetTime(goldenStart)
	layGolden(t, env)
	got := dumpCommands(t, env)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the format is not that of %s any more; it is:\n%s", golden, got)
	}
}

// layGolden puts events in every place where they can lie.
func layGolden(t *testing.T, env *redistest.Env) {
	t.Helper()
	q := newQueue(t, env, dueq.Options{})
	lane := key.NewLane(env.Namespace, "orders", 0, 1, 16)
	soon := goldenStart.Add(time.Minute)
	put := func(id string, due time.Time, opts ...dueq.PublishOption) {
		t.Helper()
		publish(t, q, "orders", "body of "+id, due, append(opts, dueq.WithID(id))...)
	}
	// claim has a session hold the ready events, in the order in which they were published.
	claim := func(session string, ids ...string) {
		t.Helper()
		for _, id := range ids {
			put(id, goldenStart)
		}
		c := readyqueue.Claim{Session: session, Lease: 15 * time.Second, Extend: true, Limit: 100, HighWater: 4096}
		got, err := c.Run(t.Context(), env.Client, lane)
		if err != nil || len(got.Leases) != len(ids) {
			t.Fatalf("claimed %+v, %v", got, err)
		}
	}
	settle := func(s ...*readyqueue.Settlement) {
		t.Helper()
		readyqueue.Settle(t.Context(), env.Client, []readyqueue.Settlements{{Lane: lane, Session: "worker", Items: s}})
		for _, s := range s {
			if s.Err != nil {
				t.Fatal(s.Err)
			}
		}
	}
	claim("worker", "retried", "half", "dead", "acked")
	settle(
		&readyqueue.Settlement{ID: "retried", Outcome: readyqueue.Retry, Delay: time.Hour, Attempts: readyqueue.Attempts{Count: 2, Cause: "a|b\nc"}},
		&readyqueue.Settlement{ID: "half", Outcome: readyqueue.Retry, Delay: time.Hour, Attempts: readyqueue.Attempts{Count: 1, Done: 1, Cause: "second"}},
		&readyqueue.Settlement{ID: "dead", Outcome: readyqueue.Bury, Attempts: readyqueue.Attempts{Count: 10, Cause: "gave up"}},
		&readyqueue.Settlement{ID: "acked"},
	)
	claim("silent", "held", "again, kept", "again, replaced")
	put("again, kept", soon, dueq.WithKeyPolicy(dueq.KeyKeep))
	if _, err := q.PublishEvent(t.Context(), "orders", []byte("new body"), soon,
		dueq.WithID("again, replaced"), dueq.WithKeyPolicy(dueq.KeyReplace)); err != nil {
		t.Fatal(err)
	}
	put("ready", goldenStart)
	put("due", soon)
	if _, err := q.PublishEvent(t.Context(), "orders", goldenBody(), goldenFar, dueq.WithID("scheduled"),
		dueq.WithMaxAttempts(3), dueq.WithMetadata(map[string]string{"trace": "17", "lang": "zł"})); err != nil {
		t.Fatal(err)
	}
	wide := newQueue(t, env, dueq.Options{Partitions: 2, Buckets: 4})
	publish(t, wide, "wide", "of two partitions", soon, dueq.WithID("partitioned"))
}

// dumpCommands writes all keys of the namespace as commands.
func dumpCommands(t *testing.T, env *redistest.Env) string {
	t.Helper()
	var b strings.Builder
	ctx, rdb := t.Context(), env.Client
	line := func(words ...string) {
		b.WriteString(words[0])
		for _, w := range words[1:] {
			b.WriteString(" " + quoteWord(w))
		}
		b.WriteByte('\n')
	}
	for _, k := range wrote(t, env) {
		switch kind := rdb.Type(ctx, k).Val(); kind {
		case "hash":
			fields := rdb.HGetAll(ctx, k).Val()
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				line("HSET", k, f, fields[f])
			}
		case "zset":
			for _, z := range rdb.ZRangeWithScores(ctx, k, 0, -1).Val() {
				line("ZADD", k, strconv.FormatFloat(z.Score, 'f', -1, 64), fmt.Sprint(z.Member))
			}
		case "list":
			for _, v := range rdb.LRange(ctx, k, 0, -1).Val() {
				line("RPUSH", k, v)
			}
		case "set":
			for _, v := range slices.Sorted(slices.Values(rdb.SMembers(ctx, k).Val())) {
				line("SADD", k, v)
			}
		default:
			t.Fatalf("key %q is a %s", k, kind)
		}
	}
	return b.String()
}

// quoteWord quotes a word as both redis-cli and Go read it.
func quoteWord(w string) string {
	b := []byte{'"'}
	for i := range len(w) {
		switch c := w[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// restoreCommands runs the commands of a dump, in the test's namespace.
func restoreCommands(t *testing.T, env *redistest.Env, dump string) {
	t.Helper()
	pipe := env.Client.Pipeline()
	for text := range strings.Lines(dump) {
		name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		words := []any{name}
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			words, rest = append(words, word), rest[len(quoted):]
		}
		k, _ := words[1].(string)
		words[1] = strings.Replace(k, "v1:", env.Namespace+":", 1)
		pipe.Do(t.Context(), words...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// goldenRun is one call of a handler.
type goldenRun struct {
	handler, attempt int
	body             string
}

// Events that version 1 has left in Redis are found, handled and settled, each
// from where it was.
func TestGolden(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		dump, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		restoreCommands(t, env, string(dump))
		q := newQueue(t, env, dueq.Options{Buckets: 64})
		checkGolden(t, q)
		conserved(t, env, "orders")

		var mu sync.Mutex
		runs := map[string][]goldenRun{}
		handler := func(i int) dueq.Handler {
			return dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
				mu.Lock()
				defer mu.Unlock()
				runs[e.ID] = append(runs[e.ID], goldenRun{i, e.Attempt, string(e.Body)})
				return nil
			})
		}
		subscribe(t, q, "orders", handler(1), handler(2))
		subscribe(t, q, "wide", handler(1))
		eventually(t, "all that is due is handled", func() bool {
			s, w := stats(t, q, "orders"), stats(t, q, "wide")
			return s.Scheduled == 1 && s.Ready+s.Leased == 0 && w.Scheduled+w.Ready+w.Leased == 0
		})
		if s := stats(t, q, "orders"); s.Dead != 1 || s.Acked != 8 || s.Expired != 3 {
			t.Errorf("stats %+v", s)
		}
		if err := q.Reschedule(t.Context(), "orders", "dead", past()); err != nil {
			t.Error(err)
		}
		awaitGone(t, q, "orders", "dead")
		if err := q.Cancel(t.Context(), "orders", "scheduled"); err != nil {
			t.Error(err)
		}
		awaitEmpty(t, q, "orders")
		conserved(t, env, "orders")
		conserved(t, env, "wide")

		mu.Lock()
		defer mu.Unlock()
		both := func(attempt int, body string) []goldenRun { return []goldenRun{{1, attempt, body}, {2, attempt, body}} }
		for id, want := range map[string][]goldenRun{
			"retried": both(3, "body of retried"), "half": {{2, 2, "body of half"}}, "dead": both(1, "body of dead"),
			"held": both(2, "body of held"), "again, kept": both(2, "body of again, kept"), "again, replaced": both(1, "new body"),
			"ready": both(1, "body of ready"), "due": both(1, "body of due"), "partitioned": {{1, 1, "of two partitions"}},
		} {
			if !slices.Equal(runs[id], want) {
				t.Errorf("%s ran as %+v, want %+v", id, runs[id], want)
			}
			delete(runs, id)
		}
		if len(runs) > 0 {
			t.Errorf("these ran, too: %v", runs)
		}
	})
}

// checkGolden looks at the golden events before anybody has moved them.
func checkGolden(t *testing.T, q *dueq.Queue) {
	t.Helper()
	soon, later := goldenStart.Add(time.Minute), goldenStart.Add(time.Hour+time.Millisecond)
	none := time.Time{}
	for id, want := range map[string]struct {
		state    dueq.State
		due      time.Time
		attempts int
		cause    string
	}{
		"scheduled": {dueq.StateScheduled, goldenFar, 0, ""}, "due": {dueq.StateScheduled, soon, 0, ""}, "ready": {dueq.StateReady, none, 0, ""},
		"held": {dueq.StateLeased, none, 0, ""}, "again, kept": {dueq.StateLeased, none, 0, ""}, "again, replaced": {dueq.StateLeased, none, 0, ""},
		"retried": {dueq.StateScheduled, later, 2, "a|b\nc"}, "half": {dueq.StateScheduled, later, 1, "second"},
		"dead": {dueq.StateDead, none, 10, "gave up"},
	} {
		info := get(t, q, "orders", id)
		if info.State != want.state || !info.Due.Equal(want.due) || info.Attempts != want.attempts || info.LastError != want.cause {
			t.Errorf("%s is %+v, want %+v", id, info, want)
		}
	}
	if _, err := q.Get(t.Context(), "orders", "acked"); !errors.Is(err, dueq.ErrNotFound) {
		t.Errorf("acked: %v", err)
	}
	info := get(t, q, "orders", "scheduled")
	if string(info.Body) != string(goldenBody()) || info.MaxAttempts != 3 || info.Metadata["lang"] != "zł" || !info.EffectTime.Equal(goldenFar) {
		t.Errorf("scheduled is %+v", info)
	}
	if died := get(t, q, "orders", "dead").DiedAt; !died.Equal(goldenStart) {
		t.Errorf("dead since %v, want %v", died, goldenStart)
	}
	want := dueq.Stats{
		Scheduled: 4, Ready: 4, Dead: 1, OldestDue: goldenStart,
		Published: 11, Kept: 1, Delivered: 7, Acked: 1, Retried: 2, Buried: 1,
	}
	if s := stats(t, q, "orders"); !s.OldestDue.Equal(want.OldestDue) {
		t.Errorf("the oldest is due at %v", s.OldestDue)
	} else if s.OldestDue = want.OldestDue; s != want {
		t.Errorf("stats %+v, want %+v", s, want)
	}
	if topics, err := q.Topics(t.Context()); err != nil || !slices.Equal(topics, []string{"orders", "wide"}) {
		t.Errorf("topics %q, %v", topics, err)
	}
	if s := stats(t, q, "wide"); s.Scheduled != 1 {
		t.Errorf("stats %+v of two partitions", s)
	}
}

// A record of a version to come goes to dead as it lies there, and says why; once
// a program that reads it is there, it can be tried again.
func TestRecordOfTheFuture(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{PersistFn: func(_ context.Context, e *dueq.Event, _ error) error {
			t.Errorf("PersistFn got %+v", e)
			return nil
		}})
		subscribe(t, q, topic, newStage(t))
		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		for id, version := range map[string]int{"next": pool.Version + 1, "far": 1 << 40} {
			record := fmt.Sprintf("{\"v\":%d,\"at\":1732184357123,\"new\":{\"x\":[1]}}\nbody\x00\xff\nof %s", version, id)
			due := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: id}
			if err := env.Client.HSet(t.Context(), lane.Pool, id, record).Err(); err != nil {
				t.Fatal(err)
			}
			if err := env.Client.ZAdd(t.Context(), lane.Bucket(lane.Home(id)), due).Err(); err != nil {
				t.Fatal(err)
			}
			reschedule(t, q, id, time.Now()) // says so to the carriers, and keeps the version
			info := awaitState(t, q, topic, id, dueq.StateDead)
			cause := fmt.Sprintf("format version %d, this is version %d", version, pool.Version)
			if !strings.HasSuffix(info.LastError, cause) || info.Attempts != 0 || !strings.HasPrefix(string(info.Body), fmt.Sprintf("{\"v\":%d,", version)) ||
				!strings.HasSuffix(string(info.Body), "\nbody\x00\xff\nof "+id) {
				t.Errorf("%+v, body %q", info, info.Body)
			}
		}
		conserved(t, env, topic)
	})
}
