package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	pageviews "github.com/dueq-io/dueq/examples/pageviews"
	"github.com/dueq-io/dueq/internal/redistest"
)

// Killed at any moment, the program goes on where it was, and ends with exact
// totals.
func TestKilled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for _, log := range accessLogs(t) {
			t.Run(log.name, func(t *testing.T) {
				pace := fmt.Sprint(log.requests) // all within a second
				p := newProgram(t, log, onServer(env, "-window", "200ms", "-pace", pace)...)
				for kills := 0; kills < 3; {
					if p.startAndKill(env, 0.4) {
						kills++
					}
				}
				p.startAndKill(env, 1) // while it waits for the last writes
				p.finish(p.start())
			})
		}
	})
}

// startAndKill starts the program and kills it soon after it has counted some
// more lines: at most this share of those that are left. If it had ended before,
// startAndKill checks it and returns false: the next start begins anew.
func (p *program) startAndKill(env *redistest.Env, share float64) bool {
	p.t.Helper()
	c := pageviews.NewCounter(env.Client, nil, nil, env.Namespace, p.fingerprint, 0)
	counted, err := c.Counted(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	target := p.log.requests
	if share < 1 {
		target = int(counted) + 1 + rand.IntN(1+int(share*float64(p.log.requests-int(counted))))
	}
	run := p.start()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for running := true; running && int(counted) < target; {
		select {
		case <-run.done:
			running = false
		case <-tick.C:
			if counted, err = c.Counted(p.t.Context()); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	select {
	case <-run.done:
	case <-time.After(rand.N(100 * time.Millisecond)): // at any instruction
	}
	if run.kill() {
		return true
	}
	p.finish(run)
	return false
}

// Requests whose process died after it counted them, and before it published,
// reach the database all the same; and a count that is repeated counts once.
func TestDiedBeforePublish(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		log := syntheticLog(t)
		p := newProgram(t, log, onServer(env, "-window", "1ms")...)
		c := pageviews.NewCounter(env.Client, nil, nil, env.Namespace, p.fingerprint, 0)
		text, err := os.ReadFile(log.file)
		if err != nil {
			t.Fatal(err)
		}
		err = pageviews.EachLine(bytes.NewReader(text), func(line int, path string, ok bool) error {
			if !ok {
				return nil
			}
			if err := c.Count(t.Context(), line, path); err != nil {
				return err
			}
			return c.Count(t.Context(), line, path)
		})
		if err != nil {
			t.Fatal(err)
		}
		out := p.finish(p.start())
		if want := fmt.Sprintf("%d requests, %[1]d of them counted before\n", log.requests); !strings.HasPrefix(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
		if want := fmt.Sprintf("\n%d database writes", len(log.counts)); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
		if left, err := c.Counted(t.Context()); err != nil || left != 0 {
			t.Errorf("%d lines are still counted after the end of the run, %v", left, err)
		}
		again := p.finish(p.start()) // a new run
		if want := fmt.Sprintf("%d requests, 0 of them counted before\n", log.requests); !strings.HasPrefix(again, want) {
			t.Errorf("no %q in\n%s", want, again)
		}
	})
}

func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	p := newProgram(t, syntheticLog(t), "-redis", "", "-window", "10ms")
	if out := p.finish(p.start()); !strings.HasPrefix(out, "No Redis: ") {
		t.Errorf("it does not say that there is no Redis:\n%s", out)
	}
}

func TestUnreachableRedis(t *testing.T) {
	t.Parallel()
	p := newProgram(t, syntheticLog(t), "-redis", "redis://127.0.0.1:1")
	run := p.start()
	<-run.done
	if run.err == nil || !strings.Contains(run.stderr.String(), "127.0.0.1:1") {
		t.Errorf("it ended with %v:\n%s%s", run.err, run.stdout.String(), run.stderr.String())
	}
}
