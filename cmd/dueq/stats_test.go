package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// stats --watch goes on until it is interrupted, and tells rates.
func TestWatch(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		v.publish("t", "0", "x", time.Now().Add(time.Hour))
		for _, output := range []string{"json", "table"} {
			ctx, cancel := context.WithCancel(t.Context())
			in, out := io.Pipe()
			ended := make(chan int, 1)
			go func() {
				args := append([]string{"stats", "--watch", "--interval", "100ms", "-o", output}, v.flags...)
				ended <- command.Run(ctx, args, strings.NewReader(""), out, io.Discard)
				_ = out.Close()
			}()
			lines := bufio.NewScanner(in)
			next := func() string {
				if !lines.Scan() {
					t.Fatalf("%s ends: %v", output, lines.Err())
				}
				return lines.Text()
			}
			if output == "json" {
				v.has(next(), `"scheduled":1`, `"at":"`)
				v.publish("t", "1", "x", time.Now().Add(time.Hour))
				for {
					line := next()
					v.has(line, `"rates":{"published":`)
					if !strings.Contains(line, `"rates":{"published":0,`) {
						v.has(line, `"scheduled":2`)
						break
					}
				}
			} else {
				v.has(next(), "PUBLISHED/S")
				v.has(next(), "  t")
				v.has(next())
				v.has(next(), "PUBLISHED/S")
			}
			cancel()
			go func() { _, _ = io.Copy(io.Discard, in) }()
			if code := <-ended; code != 0 {
				t.Errorf("%s: exit code %d", output, code)
			}
		}
	})
}

// stats shows the topics that can be counted, and says which cannot, and why.
func TestStatsWithoutOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		for _, topic := range []string{"a", "b", "c"} {
			v.publish(topic, "0", "x", time.Now().Add(time.Hour))
		}
		if err := env.Client.Set(t.Context(), "{"+env.Namespace+":b}:dead", "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		table := v.run(1, "stats")
		v.has(table, "  b (not counted: ", "WRONGTYPE", "dueq: 1 of 3 topics could not be counted\n")
		if rows := regexp.MustCompile(`(?m)^ +1 .* (a|c)$`).FindAllString(table, -1); len(rows) != 2 {
			t.Errorf("the others' rows %q in\n%s", rows, table)
		}
		if row := regexp.MustCompile(`(?m)^ *(- +){11}b `).FindString(table); row == "" {
			t.Errorf("no row of dashes in\n%s", table)
		}
		code, stdout, stderr := runWith(t.Context(), "", append([]string{"stats", "-o", "json"}, v.flags...)...)
		var all struct{ Topics []map[string]any }
		if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != 1 || len(all.Topics) != 3 {
			t.Fatalf("exit code %d, %v:\n%s\n%s", code, err, stdout, stderr)
		}
		v.has(stderr, "1 of 3 topics could not be counted")
		if b := all.Topics[1]; len(b) != 2 || b["topic"] != "b" || !strings.Contains(b["error"].(string), "WRONGTYPE") || all.Topics[2]["scheduled"] != 1.0 {
			t.Errorf("%+v", all)
		}
		v.has(v.run(1, "stats", "b"), "WRONGTYPE") // nothing is left to show
		v.run(0, "stats", "a", "c")
	})
}

// stats --watch goes on when a topic cannot be counted, and tells no rates when it
// can again, for there is nothing to compare with.
func TestWatchWithoutOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		v.publish("a", "0", "x", time.Now().Add(time.Hour))
		v.publish("b", "0", "x", time.Now().Add(time.Hour))
		dead := "{" + env.Namespace + ":b}:dead"
		if err := env.Client.Set(t.Context(), dead, "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		in, out := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			args := append([]string{"stats", "--watch", "--interval", "100ms", "-o", "json"}, v.flags...)
			ended <- command.Run(ctx, args, strings.NewReader(""), out, io.Discard)
			_ = out.Close()
		}()
		lines := bufio.NewScanner(in)
		next := func() (a, b map[string]any) {
			var all struct{ Topics []map[string]any }
			if !lines.Scan() {
				t.Fatalf("it ends: %v", lines.Err())
			}
			if err := json.Unmarshal(lines.Bytes(), &all); err != nil || len(all.Topics) != 2 {
				t.Fatalf("%v in %s", err, lines.Text())
			}
			return all.Topics[0], all.Topics[1]
		}
		next()
		if a, b := next(); a["rates"] == nil || b["error"] == nil {
			t.Errorf("%v, %v", a, b)
		}
		if err := env.Client.Del(t.Context(), dead).Err(); err != nil {
			t.Fatal(err)
		}
		_, b := next()
		for b["error"] != nil {
			_, b = next()
		}
		if b["rates"] != nil || b["scheduled"] != 1.0 {
			t.Errorf("%v", b)
		}
		if _, b = next(); b["rates"] == nil {
			t.Errorf("%v", b)
		}
		cancel()
		go func() { _, _ = io.Copy(io.Discard, in) }()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}
