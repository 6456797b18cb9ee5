package main_test

import (
	"bufio"
	"context"
	"io"
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
