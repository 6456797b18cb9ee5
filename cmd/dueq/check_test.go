package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// checked is the JSON object that check -o json prints.
type checked struct {
	Redis, Namespace string
	Left             int
	Topics           []struct {
		Topic          string
		Events, Places int
		Findings       []struct {
			Kind            string
			Count, Repaired int
			Examples        []struct {
				ID   string
				Keys []string
			}
		}
	}
}

// store publishes an event to each topic of namespace ns.
func store(t *testing.T, rdb redis.UniversalClient, ns string, topics ...string) {
	t.Helper()
	q, err := dueq.New(rdb, dueq.Options{Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		if _, err := q.PublishEvent(t.Context(), topic, []byte("body"), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.ShutDown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkJSON runs check with -o json.
func checkJSON(t *testing.T, wantCode int, args ...string) (got checked, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t.Context(), nil, append([]string{"check", "-o", "json"}, args...)...)
	if code != wantCode {
		t.Fatalf("check %q: exit code %d, want %d; stderr:\n%s", args, code, wantCode, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return got, stderr
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := "redis://" + s.Addr()
	store(t, s.Client(), "dueq", "a", "b")
	store(t, s.Client(), "other", "c")
	got, stderr := checkJSON(t, 0, "--redis", url, "--all")
	if got.Redis != url || got.Namespace != "dueq" || got.Left != 0 || len(got.Topics) != 2 || stderr != "" ||
		got.Topics[0].Topic != "a" || got.Topics[1].Events != 1 || got.Topics[1].Places != 1 || got.Topics[1].Findings == nil {
		t.Errorf("clean: %+v, stderr %q", got, stderr)
	}
	for i := range 7 {
		if err := s.Client().HSet(t.Context(), "{dueq:b}:pool", fmt.Sprintf("orphan\n%d", i), "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, stderr = checkJSON(t, 1, "--redis", url, "a", "b")
	if got.Left != 7 || len(got.Topics) != 2 || len(got.Topics[1].Findings) != 1 || !strings.Contains(stderr, "7 faults found") {
		t.Fatalf("broken: %+v, stderr %q", got, stderr)
	}
	f := got.Topics[1].Findings[0]
	if f.Kind != "no_place" || f.Count != 7 || f.Repaired != 0 || len(f.Examples) != 7 || f.Examples[0].Keys[0] != "{dueq:b}:pool" {
		t.Errorf("found %+v", f)
	}
	code, stdout, _ := run(t.Context(), nil, "check", "--redis", url, "--all")
	for _, want := range []string{"TOPIC", "a", "nothing", "no_place", `"orphan\n`, "{dueq:b}:pool", "and 2 more"} {
		if code != 1 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d; the table lacks %q:\n%s", code, want, stdout)
		}
	}
	got, _ = checkJSON(t, 0, "--redis", url, "--repair", "b")
	if got.Left != 0 || got.Topics[0].Findings[0].Repaired != 7 {
		t.Errorf("repaired: %+v", got)
	}
	checkJSON(t, 0, "--redis", url, "--all")
	got, _ = checkJSON(t, 0, "--redis", url, "--all", "--namespace", "other")
	if len(got.Topics) != 1 || got.Topics[0].Topic != "c" {
		t.Errorf("other namespace: %+v", got)
	}
	if code, _, stderr := run(t.Context(), nil, "check", "--redis", url, "c"); code != 2 || !strings.Contains(stderr, `no topic "c" in namespace "dueq"`) {
		t.Errorf("unknown topic: exit code %d, stderr %q", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := run(ctx, nil, "check", "--redis", url, "--all"); code != 130 {
		t.Errorf("interrupted: exit code %d, stderr %q", code, stderr)
	}
}

// A topic that cannot be checked does not keep the others from being.
func TestCheckWithoutOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		for _, topic := range []string{"a", "b", "c"} {
			v.publish(topic, "0", "x", time.Now().Add(time.Hour))
		}
		if err := env.Client.Set(t.Context(), "{"+env.Namespace+":b}:dead", "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		table := v.run(1, "check", "--all")
		v.has(table, `topic "b"`, "WRONGTYPE")
		if rows := regexp.MustCompile(`(?m)^[a-c] +1 +nothing`).FindAllString(table, -1); len(rows) != 2 || rows[0][0] != 'a' || rows[1][0] != 'c' {
			t.Errorf("rows %q in\n%s", rows, table)
		}
	})
}

func TestCheckOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2)
	url := "redis-cluster://" + c.Addrs()[0]
	store(t, c.Client(), "dueq", "a", "b", "c", "d")
	for _, topic := range []string{"a", "b", "c", "d"} {
		if err := c.Client().SAdd(t.Context(), "{dueq:"+topic+"}:held:nobody", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().HSet(t.Context(), "{dueq:"+topic+"}:pool", "x", "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := checkJSON(t, 1, "--redis", url, "--all")
	if got.Left != 4 || got.Topics[3].Findings[0].Kind != "no_session" {
		t.Errorf("broken: %+v", got)
	}
	checkJSON(t, 0, "--redis", url, "--all", "--repair")
	checkJSON(t, 0, "--redis", url, "--all")
}

func TestCheckUsage(t *testing.T) {
	t.Setenv("DUEQ_REDIS", "")
	for args, want := range map[string]string{
		"check":                                  "name topics, or --all",
		"check --all a":                          "exclude each other",
		"check --all -o xml":                     `"xml" for "-o, --output"`,
		"check --all":                            "no Redis is named",
		"check a --redis http://h":               "--redis: a Redis URL begins with",
		"check --nonsense":                       "unknown flag",
		"check --all --namespace a:b --redis %s": "invalid options",
	} {
		if strings.Contains(args, "%s") {
			args = fmt.Sprintf(args, "redis://"+redistest.Mini(t).Addr)
		}
		code, stdout, stderr := run(t.Context(), nil, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("dueq %s: exit code %d, stdout %q, stderr %q, want 2 and %q", args, code, stdout, stderr, want)
		}
	}
}
