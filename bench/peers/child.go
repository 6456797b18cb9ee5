package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// childFlag, as the first argument, makes the program measure the job that the
// second one describes, and print an outcome.
const childFlag = "-child"

// job is one measurement.
type job struct {
	System, Scenario string
	Sizing           sizing
}

// measure has a fresh process do the job.
func (j job) measure(ctx context.Context) (outcome, error) {
	var out outcome
	program, err := os.Executable()
	if err != nil {
		return out, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return out, err
	}
	cmd := exec.CommandContext(ctx, program, childFlag, string(text))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * closeTimeout // it has a server to end
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		return out, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return out, json.Unmarshal(stdout.Bytes(), &out)
}

// runChild does a job: it returns the exit code.
func runChild(ctx context.Context, text string, stdout, stderr io.Writer) int {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		var out outcome
		if out, err = j.do(ctx); err == nil {
			err = json.NewEncoder(stdout).Encode(out)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// do measures in this process, on a fresh server.
func (j job) do(ctx context.Context) (out outcome, err error) {
	chosen, err := choose("system", []string{j.System}, systems(), system.title)
	if err != nil {
		return out, err
	}
	what, err := choose("scenario", []string{j.Scenario}, scenarios(), scenario.title)
	if err != nil {
		return out, err
	}
	h, err := chosen[0].start(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	q, err := chosen[0].open(h.server.Addr())
	if err != nil {
		return out, err
	}
	b := &bed{sizing: j.Sizing, host: h, system: chosen[0], queue: q, outcome: outcome{Server: h.version, Values: make(map[string]float64)}}
	err = what[0].run(ctx, b)
	start := time.Now()
	err = errors.Join(err, q.Close())
	if d := time.Since(start); d > closeTimeout {
		err = errors.Join(err, fmt.Errorf("it took %v to end", d))
	}
	return b.outcome, err
}
