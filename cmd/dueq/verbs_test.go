package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// verbs runs verbs on a namespace of its own.
type verbs struct {
	*testing.T
	env   *redistest.Env
	q     *dueq.Queue
	flags []string
}

func newVerbs(t *testing.T, env *redistest.Env) *verbs {
	q, flags := target(t, env)
	return &verbs{t, env, q, flags}
}

// run runs a verb, and fails the test unless it exits with code. Its text is
// stdout and stderr.
func (v *verbs) run(code int, args ...string) (text string) {
	v.Helper()
	got, stdout, stderr := runWith(v.Context(), "", append(args, v.flags...)...)
	if got != code {
		v.Errorf("dueq %q: exit code %d, want %d; stdout:\n%s\nstderr:\n%s", args, got, code, stdout, stderr)
	}
	return stdout + stderr
}

// json runs a verb with -o json, and reads what it prints.
func (v *verbs) json(into any, args ...string) {
	v.Helper()
	code, stdout, stderr := runWith(v.Context(), "", append(append(args, "-o", "json"), v.flags...)...)
	if code != 0 || stderr != "" {
		v.Fatalf("dueq %q: exit code %d, stderr:\n%s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		v.Fatalf("dueq %q: %v in %q", args, err, stdout)
	}
}

// has fails the test unless a text has all parts, and nothing that a terminal
// would take for a command.
func (v *verbs) has(text string, parts ...string) {
	v.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			v.Errorf("%q lacks %q", text, part)
		}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || 0x7f <= r && r < 0xa0 || r == '\u202e') }); i >= 0 {
		v.Errorf("a control character at byte %d of %q", i, text)
	}
}

func (v *verbs) publish(topic, id, body string, due time.Time) {
	v.Helper()
	if _, err := v.q.PublishEvent(v.Context(), topic, []byte(body), due, dueq.WithID(id)); err != nil {
		v.Fatal(err)
	}
}

// kill has the events of a topic die of an error.
func (v *verbs) kill(topic, cause string, events int) {
	v.Helper()
	q, err := dueq.New(v.env.NewClient(), dueq.Options{Namespace: v.env.Namespace})
	if err != nil {
		v.Fatal(err)
	}
	died := make(chan struct{}, events)
	err = q.Subscribe(topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		died <- struct{}{}
		return dueq.SkipRetry(errors.New(cause))
	}))
	if err != nil {
		v.Fatal(err)
	}
	for range events {
		select {
		case <-died:
		case <-time.After(time.Minute):
			v.Fatal("an event does not die")
		}
	}
	if err := q.ShutDown(v.Context()); err != nil { // by then Redis has it
		v.Fatal(err)
	}
}

// bodyWidth is how much of a body the table of ls shows.
const bodyWidth = 60

// nasty is text that a terminal would take for a command.
const nasty = "\x1b]0;owned\x07\u009b31m\u202e\x7f"

func TestLookingVerbs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		if text := v.run(0, "topics"); text != "" {
			t.Errorf("no topics: %q", text)
		}
		v.has(v.run(0, "stats"), "no topics in namespace")
		v.has(v.run(0, "sessions"), "no sessions in namespace")
		for i := range 7 {
			v.publish("a", fmt.Sprint("id ", i), fmt.Sprintf(`{"n":%d}`, i), time.Now().Add(time.Duration(i+1)*time.Hour-time.Second))
		}
		v.publish("b\u202e", "dead", nasty, time.Now())
		v.kill("b\u202e", "no route: "+nasty, 1)

		v.has(v.run(0, "topics"), "a\n", `"b\u202e"`)
		var topics struct{ Topics []string }
		if v.json(&topics, "topics"); fmt.Sprintf("%q", topics.Topics) != `["a" "b\u202e"]` {
			t.Errorf("topics %q", topics.Topics)
		}
		v.has(v.run(0, "stats"), "SCHEDULED", "TOPIC", "a", `"b\u202e"`)
		var counted struct {
			Topics []struct {
				Topic           string
				Scheduled, Dead int
				Counters        struct{ Published, Buried int }
				Rates           *struct{}
			}
		}
		v.json(&counted, "stats", "b\u202e", "a")
		if c := counted.Topics; len(c) != 2 || c[0].Dead != 1 || c[0].Counters.Buried != 1 || c[1].Scheduled != 7 || c[1].Topic != "a" || c[1].Rates != nil {
			t.Errorf("stats %+v", c)
		}

		v.has(v.run(0, "ls", "a"), "DUE", "id 0", "in 59m", "id 6", `{"n":6}`)
		v.has(v.run(0, "ls", "a", "--state", "leased"), "none is leased")
		v.has(v.run(0, "ls", "b\u202e", "--state", "dead"), "DIED", "dead", `no route: \x1b`)
		var page struct {
			Events []struct {
				ID, State, Text string
				Body            map[string]int
			}
			Next string
		}
		v.json(&page, "ls", "a", "--limit", "3", "--preview", "100")
		if len(page.Events) != 3 || page.Events[2].Body["n"] != 2 || page.Events[2].State != "scheduled" || page.Next == "" {
			t.Errorf("listed %+v", page)
		}
		v.has(v.run(0, "ls", "a", "--limit", "3"), "there are more: add --cursor "+page.Next)
		text := v.run(0, "ls", "a", "--cursor", page.Next, "--preview", "3")
		if v.has(text, "id 3", `{"n…`); strings.Contains(text, "id 2") || strings.Contains(text, "there are more") {
			t.Errorf("the second page: %q", text)
		}
		v.has(v.run(0, "ls", "a", "--until", "90m"), "id 0")
		if text := v.run(0, "ls", "a", "--since", "5h30m", "--all", "-o", "json"); strings.Count(text, "\n") != 2 || !strings.HasPrefix(text, `{"id":"id 5"`) {
			t.Errorf("all: %q", text)
		}
		if text := v.run(0, "ls", "a", "--all"); strings.Count(text, "\n") != 8 {
			t.Errorf("all: %q", text)
		}
		v.has(v.run(0, "ls", "a", "--all", "--id-prefix", "none"), "none is scheduled")
		v.publish("a", "binary", strings.Repeat("\xff\x00", 100), time.Now().Add(10*time.Hour))
		v.has(v.run(0, "ls", "a", "--id-prefix", "bin"), "200", strings.Repeat(`\xff\x00`, bodyWidth/2)+`"…`)

		for _, args := range []string{"stats c", "ls c", "purge c --yes", "requeue c --all --yes", "resume c"} {
			v.has(v.run(2, strings.Fields(args)...), `no topic "c"`)
		}
		v.has(v.run(1, "get", "a", "none"), "no such event")
		v.has(v.run(2, "get", "a{", "x"), "invalid topic")
	})
}

func TestGet(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		for body, want := range map[string]string{
			`{"a":[1,{"b":"x"}]}`:                "\n\n{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\"\n    }\n  ]\n}\n",
			"plain\ntext ä\n":                    "\n\nplain\ntext ä\n",
			"{\"a\":\"\u009b\u202e\U000e0001\"}": `"a": "\u009b\u202e\udb40\udc01"`,
			nasty:                                "|.]0;owned",
			"\x00\xff":                           "00000000  00 ff ",
			"":                                   "body         0 bytes\n",
		} {
			v.publish("a", "x", body, time.Now().Add(time.Hour-time.Second))
			v.has(v.run(0, "get", "a", "x"), "id           x\n", "state        scheduled", ", in 59m", "attempts     0 used up\n", want)
			if raw := v.run(0, "get", "a", "x", "--raw"); raw != body {
				t.Errorf("raw %q, want %q", raw, body)
			}
			v.has(v.run(0, "cancel", "a", "x"), "1 event cancelled")
		}
		v.publish("a", "dead", "{}", time.Now())
		v.kill("a", "first\n\tsecond", 1)
		v.has(v.run(0, "get", "a", "dead"), "attempts     1 used up\n", "died ", "last error   ", "first\n                 second")
		v.has(v.run(2, "get", "a", "dead", "--raw", "-o", "json"), "exclude each other")
		var got struct {
			State     string
			Body      *struct{}
			LastError string `json:"last_error"`
		}
		if v.json(&got, "get", "a", "dead"); got.State != "dead" || got.Body == nil || !strings.Contains(got.LastError, "first\n\tsecond") {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSessionsVerb(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		q, err := dueq.New(env.NewClient(), dueq.Options{Namespace: env.Namespace})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.ShutDown(context.Background()) })
		for _, topic := range []string{"a", "b\u202e", "c", "d", "e"} {
			if err := q.Subscribe(topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return nil })); err != nil {
				t.Fatal(err)
			}
		}
		var list struct {
			Sessions []struct {
				PID    int
				Topics []string
			}
		}
		for len(list.Sessions) == 0 || len(list.Sessions[0].Topics) < 5 {
			if err := t.Context().Err(); err != nil {
				t.Fatal(err)
			}
			v.json(&list, "sessions")
		}
		if list.Sessions[0].PID != os.Getpid() {
			t.Errorf("sessions %+v", list)
		}
		v.has(v.run(0, "sessions"), "LAST SEEN", fmt.Sprint(os.Getpid()), `a, "b\u202e", c and 2 more`)
	})
}

func TestDistance(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now()
	for d, want := range map[time.Duration]string{
		0: "now", 499 * time.Millisecond: "now", -499 * time.Millisecond: "now", time.Second: "in 1s", -1500 * time.Millisecond: "1.5s ago",
		59900 * time.Millisecond: "in 59s", time.Minute: "in 1m", 90 * time.Second: "in 1m30s", -time.Hour: "1h ago",
		time.Hour + 5*time.Minute + 3*time.Second: "in 1h5m", -day: "1d ago", 50 * time.Hour: "in 2d2h", 999*day + 23*time.Hour: "in 999d23h",
		100_000 * day: "in 100,000d", -100_000 * day: "100,000d ago",
	} {
		if got := command.Distance(now.Add(d), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := command.Distance(time.Time{}, now); got != "-" {
		t.Errorf("no time: %q", got)
	}
}

// A shell that completes is told topics, states and nothing that it would run.
func TestCompletedWords(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		for _, topic := range []string{"order.close", "order.open", "mail", "\u202e"} {
			v.publish(topic, "x", "x", time.Now())
		}
		for args, want := range map[string]string{
			"ls ord":            "order.close\norder.open\n:4\n",
			"stats mail order.": "order.close\norder.open\n:4\n",
			"get mail o":        ":4\n",
			"ls --state=":       "scheduled\nready\nleased\ndead\n:4\n",
			"purge mail -o ":    "table\njson\n:4\n",
		} {
			words := strings.Split(args, " ")
			all := append(append([]string{"__complete"}, v.flags...), words...)
			if code, stdout, _ := run(t.Context(), nil, all...); code != 0 || stdout != want {
				t.Errorf("%q: exit code %d, %q, want %q", args, code, stdout, want)
			}
		}
		if code, stdout, _ := run(t.Context(), nil, "__complete", "ls", "--redis", "redis://127.0.0.1:1", ""); code != 0 || stdout != ":4\n" {
			t.Errorf("without Redis: exit code %d, %q", code, stdout)
		}
	})
}
