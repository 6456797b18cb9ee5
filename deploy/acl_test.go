package deploy_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// aclRules are the rules that the page about Redis quotes, word by word: that for
// a server, and what a cluster needs besides.
func aclRules(t *testing.T) (server, cluster []string) {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```sh\nredis-cli (ACL SETUSER dueq .*?)```").FindAllStringSubmatch(read(t, "../docs/redis.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/redis.md quotes %d rules, want two", len(blocks))
	}
	words := strings.NewReplacer("\\\n", " ", "'", "")
	return strings.Fields(words.Replace(blocks[0][1])), strings.Fields(words.Replace(blocks[1][1]))
}

// setUser makes a server follow a rule.
func setUser(t *testing.T, admin *redis.Client, rule []string) {
	t.Helper()
	words := make([]any, len(rule))
	for i, w := range rule {
		words[i] = w
	}
	if err := admin.Do(t.Context(), words...).Err(); err != nil {
		t.Fatal(err)
	}
}

// commandsOf are the commands that a rule grants.
func commandsOf(rule []string) (commands []string) {
	for _, word := range rule {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// restricted is a client of the server that may do what the rule says.
func restricted(t *testing.T, server *redistest.Server, rule []string) *redis.Client {
	t.Helper()
	setUser(t, server.Client(), rule)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "dueq", Password: "PASSWORD"})
	t.Cleanup(func() { _ = rdb.Close() }) // nothing is left to lose
	return rdb
}

// denied are the commands that the server has refused.
func denied(t *testing.T, admin *redis.Client) (commands []string) {
	t.Helper()
	entries, err := admin.ACLLog(t.Context(), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		commands = append(commands, e.Object)
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// harmless may be refused: what the client says of itself, and what dueq asks to
// warn about settings.
var harmless = regexp.MustCompile(`^(client|info|config)(\||$)`)

// With the rights that the page quotes all of dueq works, and none of them is
// superfluous.
func TestACL(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule, _ := aclRules(t)
	rdb, admin := restricted(t, server, rule), server.Client()
	granted := commandsOf(rule)
	scripts := scriptCommands(t)
	for _, command := range scripts {
		if !slices.Contains(granted, command) {
			t.Errorf("the rule lacks %s, which scripts call", command)
		}
	}
	use(t, rdb)

	for _, command := range denied(t, admin) {
		if !harmless.MatchString(command) {
			t.Errorf("the rule lacks %s", command)
		}
	}
	called, err := admin.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	seldom := []string{"blpop", "smembers"} // not at a moment of the test's choosing
	for _, command := range granted {
		if !slices.Contains(append(seldom, scripts...), command) && !strings.Contains(called, "cmdstat_"+command+":") {
			t.Errorf("the rule grants %s, which was not called", command)
		}
	}
}

// On a cluster a few rights more are needed, and no others.
func TestACLOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	server, more := aclRules(t)
	for i := range 3 {
		admin := cluster.Server(i).Client()
		setUser(t, admin, server)
		setUser(t, admin, more)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Username: "dueq", Password: "PASSWORD"})
	t.Cleanup(func() { _ = rdb.Close() }) // nothing is left to lose
	use(t, rdb)
	for i := range 3 {
		for _, command := range denied(t, cluster.Server(i).Client()) {
			if !harmless.MatchString(command) {
				t.Errorf("the rules lack %s", command)
			}
		}
	}
}

// scriptCommands are those that the Lua scripts of all packages call.
func scriptCommands(t *testing.T) (commands []string) {
	t.Helper()
	call := regexp.MustCompile(`redis\.p?call\('(\w+)'`)
	for _, pattern := range []string{"../*/*.lua", "../internal/*/*.lua"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasPrefix(file, "../internal/conserve/") {
				continue // a test's own
			}
			for _, m := range call.FindAllStringSubmatch(read(t, file), -1) {
				commands = append(commands, strings.ToLower(m[1]))
			}
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// use does everything that one can do with a queue.
func use(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(rdb.Ping(ctx).Err())
	q, err := dueq.New(rdb, dueq.Options{MaxAttempts: 2, Fallback: 100 * time.Millisecond, Backoff: func(int, error) time.Duration { return 0 }})
	must(err)
	far := time.Now().Add(time.Hour)
	for _, id := range []string{"kept", "fine", "bad", "cancelled"} {
		_, err = q.PublishEvent(ctx, "a", nil, far, dueq.WithID(id))
		must(err)
	}
	_, err = q.PublishEvent(ctx, "a", nil, far, dueq.WithID("kept"), dueq.WithKeyPolicy(dueq.KeyKeep))
	must(err)
	_, err = q.PublishEvents(ctx, "a", []dueq.NewEvent{{EffectTime: far}, {EffectTime: far}})
	must(err)
	must(q.Pause(ctx, "a"))
	must(q.Reschedule(ctx, "a", "fine", time.Now()))
	must(q.Reschedule(ctx, "a", "bad", time.Now()))
	must(q.Cancel(ctx, "a", "cancelled"))
	handled := make(chan string, 10)
	must(q.Subscribe("a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		handled <- e.ID
		if e.ID == "bad" {
			return errors.New("broken")
		}
		return nil
	})))
	must(q.Resume(ctx, "a"))
	stats := func() dueq.Stats {
		s, err := q.Stats(ctx, "a")
		must(err)
		return s
	}
	redistest.Eventually(t, "an ack and a death", func() bool { s := stats(); return s.Acked == 1 && s.Dead == 1 })
	n, err := q.Requeue(ctx, "a", dueq.Filter{}, far)
	must(err)
	info, err := q.Get(ctx, "a", "kept")
	must(err)
	if n != 1 || info.State != dueq.StateScheduled {
		t.Errorf("requeued %d, found %+v", n, info)
	}
	for _, state := range []dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateLeased, dueq.StateDead} {
		_, err := q.List(ctx, "a", dueq.Query{State: state})
		must(err)
	}
	_, err = q.Forecast(ctx, "a", time.Minute, 2*time.Hour)
	must(err)
	_, err = q.Topics(ctx)
	must(err)
	redistest.Eventually(t, "the session is seen", func() bool {
		sessions, err := q.Sessions(ctx)
		must(err)
		return len(sessions) == 1
	})
	pull(t, q)
	for _, check := range []func(context.Context, string) (*dueq.Report, error){q.Check, q.Repair} {
		report, err := check(ctx, "a")
		must(err)
		if len(report.Findings) > 0 {
			t.Errorf("findings %+v", report.Findings)
		}
	}
	purged, err := q.Purge(ctx, "a")
	must(err)
	if purged != 4 {
		t.Errorf("purged %d", purged)
	}
	must(q.ShutDown(ctx))
}

// pull consumes an event of another topic.
func pull(t *testing.T, q *dueq.Queue) {
	t.Helper()
	if _, err := q.PublishEvent(t.Context(), "b", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := q.Consume("b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Claim(t.Context(), 1, time.Minute)
	if err != nil || len(got) != 1 {
		t.Fatalf("claimed %v, %v", got, err)
	}
	if err := got[0].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refused reports whether an error says that a right is lacking, in the words of
// one of the versions of Redis.
func refused(text string) bool {
	return strings.Contains(text, "NOPERM") || strings.Contains(text, "can't run this command")
}

// A right that is taken away is noticed: a publish fails, what has no caller is
// logged, and all goes on when the right is there again.
func TestACLWithoutARight(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule, _ := aclRules(t)
	rdb, admin := restricted(t, server, rule), server.Client()
	core, logs := observer.New(zapcore.WarnLevel)
	q, err := dueq.New(rdb, dueq.Options{Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.ShutDown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	allow := func(change string) {
		t.Helper()
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "dueq", change).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("-zadd")
	if id, err := q.PublishEvent(t.Context(), "a", nil, time.Now().Add(time.Hour)); err == nil || !refused(err.Error()) {
		t.Errorf("publish without a right: %q, %v", id, err)
	}
	allow("+zadd")
	if _, err := q.PublishEvent(t.Context(), "a", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	allow("-lpop")
	handled := make(chan struct{}, 1)
	if err := q.Subscribe("a", dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		handled <- struct{}{}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "it is logged", func() bool {
		return slices.ContainsFunc(logs.All(), func(e observer.LoggedEntry) bool {
			text, _ := e.ContextMap()["error"].(string)
			return refused(text)
		})
	})
	allow("+lpop")
	select {
	case <-handled:
	case <-time.After(patience):
		t.Error("the event was not delivered")
	}
}
