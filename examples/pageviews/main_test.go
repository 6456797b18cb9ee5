package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pageviews "github.com/dueq-io/dueq/examples/pageviews"
	"github.com/dueq-io/dueq/internal/redistest"
)

// asProgram makes the test binary be the program.
const asProgram = "PAGEVIEWS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		pageviews.Main()
		return
	}
	redistest.Main(m)
}

// program is the program on one log, with its own database.
type program struct {
	t           *testing.T
	log         accessLog
	fingerprint string
	db          string
	args        []string
}

func newProgram(t *testing.T, log accessLog, args ...string) *program {
	t.Helper()
	text, err := os.ReadFile(log.file)
	if err != nil {
		t.Fatal(err)
	}
	survey, err := pageviews.ReadSurvey(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "test.db")
	return &program{
		t: t, log: log, fingerprint: survey.Fingerprint(), db: db,
		args: append([]string{"-log", log.file, "-db", db}, args...),
	}
}

// onServer are the flags that put a program onto a test's server.
func onServer(env *redistest.Env, args ...string) []string {
	return append([]string{"-redis", "redis://" + env.Addr, "-namespace", env.Namespace}, args...)
}

// process is one run of the program.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{} // closed when it has ended
	err            error         // how
}

func (p *program) start() *process {
	p.t.Helper()
	run := &process{cmd: exec.CommandContext(p.t.Context(), os.Args[0], p.args...), done: make(chan struct{})}
	run.cmd.Env = append(os.Environ(), asProgram+"=1", "DUEQ_REDIS=")
	run.cmd.Stdout, run.cmd.Stderr = &run.stdout, &run.stderr
	if err := run.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(run.done)
		run.err = run.cmd.Wait()
	}()
	p.t.Cleanup(func() { <-run.done })
	return run
}

// kill sends SIGKILL and reports whether that is what ended the process.
func (run *process) kill() bool {
	_ = run.cmd.Process.Kill() // an error says that it has ended already
	<-run.done
	var exit *exec.ExitError
	return errors.As(run.err, &exit) && !exit.Exited()
}

// finish waits for the program's end, checks all totals and returns what it has
// printed.
func (p *program) finish(run *process) string {
	p.t.Helper()
	<-run.done
	out := run.stdout.String()
	if run.err != nil {
		p.t.Fatalf("%v\n%s%s", run.err, out, run.stderr.String())
	}
	for _, want := range []string{
		fmt.Sprintf("%d requests for %d paths; %d lines are no requests\n", p.log.requests, len(p.log.counts), p.log.others),
		fmt.Sprintf("all %d totals equal the direct count", len(p.log.counts)),
	} {
		if !strings.Contains(out, want) {
			p.t.Errorf("no %q in\n%s", want, out)
		}
	}
	store, err := pageviews.OpenStore(p.t.Context(), p.db, p.fingerprint)
	if err != nil {
		p.t.Fatal(err)
	}
	totals, writes, err := store.Totals(p.t.Context())
	if err := errors.Join(err, store.Close()); err != nil {
		p.t.Fatal(err)
	}
	if !maps.Equal(totals, p.log.counts) {
		p.t.Errorf("totals are not those of the log:\n%#v\nwant\n%#v", totals, p.log.counts)
	}
	if writes < len(totals) || writes > p.log.requests {
		p.t.Errorf("%d writes of %d totals for %d requests", writes, len(totals), p.log.requests)
	}
	p.t.Logf("%d requests, %d paths, %d writes", p.log.requests, len(totals), writes)
	return out
}
