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
	"strconv"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	// exitFinal is the exit code of a command that says that more attempts would not
	// help: EX_DATAERR.
	exitFinal = 65
	// killDelay is how long a command has to end after SIGTERM, and how long its
	// output is read once it has ended.
	killDelay = time.Second
	// keptLines and keptBytes are how much of the end of stderr becomes the error.
	keptLines = 5
	keptBytes = 1 << 10
)

// runner is a handler that runs a command for each event.
type runner struct {
	command        string
	stdout, stderr io.Writer
}

func newRunner(command string, stdout, stderr io.Writer) *runner {
	return &runner{command: command, stdout: together(stdout), stderr: together(stderr)}
}

// HandleEvent runs the command; its exit code is the verdict.
func (r *runner) HandleEvent(ctx context.Context, e *dueq.Event) error {
	environ, err := eventEnviron(e)
	if err != nil {
		return err
	}
	end := &tail{}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(e.Body), r.stdout, io.MultiWriter(end, r.stderr)
	cmd.Env = append(os.Environ(), environ...)
	cmd.WaitDelay = killDelay
	kill := inGroup(cmd)
	err = cmd.Run()
	if ctx.Err() != nil {
		kill() // what has outlived SIGTERM, or its parent
	}
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success(): // it has left something running
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the command was stopped: %w%s", context.Cause(ctx), end)
	case !errors.As(err, &exit):
		return fmt.Errorf("run the command: %w", err)
	}
	err = fmt.Errorf("the command ended with %w%s", err, end)
	if exit.ExitCode() == exitFinal {
		return dueq.SkipRetry(err)
	}
	return err
}

// eventEnviron are the variables that tell a command of its event.
func eventEnviron(e *dueq.Event) ([]string, error) {
	metadata := e.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	text, err := json.Marshal(metadata)
	return []string{
		"DUEQ_ID=" + e.ID, "DUEQ_TOPIC=" + e.Topic,
		"DUEQ_ATTEMPT=" + strconv.Itoa(e.Attempt), "DUEQ_MAX_ATTEMPTS=" + strconv.Itoa(e.MaxAttempts),
		"DUEQ_EFFECT_TIME=" + envelope.Stamp(e.EffectTime), "DUEQ_METADATA=" + string(text),
	}, err
}

// tail keeps the end of what is written.
type tail struct{ end []byte }

func (t *tail) Write(text []byte) (int, error) {
	t.end = append(t.end, text[max(0, len(text)-keptBytes):]...)
	t.end = t.end[max(0, len(t.end)-keptBytes):]
	return len(text), nil
}

// String is the last lines, for the end of an error; "" if there are none.
func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.end), "\uFFFD")), "\n")
	text := strings.Join(lines[max(0, len(lines)-keptLines):], "\n")
	if text == "" {
		return ""
	}
	return ": " + text
}
