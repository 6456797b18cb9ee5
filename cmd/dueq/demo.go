package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq/internal/digits"
)

const (
	maxDemoEvents = 1_000_000
	maxDemoSpread = time.Hour

	// cleanupTimeout is how long the end may take: shutting down, removing keys.
	cleanupTimeout = 15 * time.Second
)

// demoFlags are the flags of the verb demo.
type demoFlags struct {
	events   int
	spread   time.Duration
	output   outputFlag
	patience time.Duration
}

// newDemo is the verb demo.
func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Publish some thousand events, deliver them, and say how punctual that was",
		Long: `Publishes events that are due at random times, and delivers them through the
queue that any Go program would use. One event in ten fails at its first attempt
and succeeds at its second; one in a hundred fails at all three of its attempts
and goes to PersistFn. At the end it shows what became of the events, and how
late they were: the time from an event's effect time, by the Redis server's
clock, to the start of its handler.

Without --redis it starts an embedded miniredis, which keeps nothing: all is in
memory, and gone when the demo ends. On a real Redis it uses a namespace of its
own (demo-<random>) and removes those keys at the end, interrupted or not.

Ctrl-C ends it early, with the summary so far and exit code 130. With -o json the
summary is one JSON object, and all else goes to stderr.

` + redisHelp,
		Example: `  dueq demo
  dueq demo --events 20000 --spread 10s
  dueq demo --redis redis://localhost:6379
  dueq demo -o json | jq .lateness_ms.p99`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return f.run(cmd)
		},
	}
	cmd.Flags().IntVar(&f.events, "events", 3000, "how many `events` to publish, up to 1000000")
	cmd.Flags().DurationVar(&f.spread, "spread", 6*time.Second, "over what `time` they come due, up to 1h")
	f.output.add(cmd)
	cmd.Flags().DurationVar(&f.patience, "patience", 30*time.Second, "give up when nothing happens for this `time` while events are due")
	cmd.Flags().SortFlags = false
	return cmd
}

func (f *demoFlags) check() error {
	switch {
	case f.events < 1 || f.events > maxDemoEvents:
		return fmt.Errorf("--events is %d, not from 1 to %d", f.events, maxDemoEvents)
	case f.spread < 0 || f.spread > maxDemoSpread:
		return fmt.Errorf("--spread is %v, not from 0s to %v", f.spread, maxDemoSpread)
	case f.patience < time.Millisecond:
		return fmt.Errorf("--patience is %v, not at least %v", f.patience, time.Millisecond)
	}
	return nil
}

// run runs the demo on the server that cmd's flags name, and prints its summary.
func (f *demoFlags) run(cmd *cobra.Command) error {
	ctx, talk := cmd.Context(), cmd.OutOrStdout()
	if f.output == "json" {
		talk = cmd.ErrOrStderr()
	}
	server, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then

	f.greet(talk, server)
	p := newProgress(talk)
	d := &demo{
		rdb: server.client, namespace: "demo-" + strings.ToLower(rand.Text()[:12]),
		spread: f.spread, patience: f.patience, tally: newTally(f.events),
		progress: p, log: newLogger(p.around(cmd.ErrOrStderr())),
	}
	took, err := d.run(ctx)
	p.clear()
	if took == 0 {
		return err
	}
	c, lateness := d.tally.read()
	s := newSummary(f.events, c, lateness, took)
	s.Redis, s.ClockOffset = server.name, millis(d.offset)
	s.Interrupted = errors.Is(err, errInterrupted)
	if !p.terminal {
		fmt.Fprintln(talk)
	}
	if f.output == "json" {
		return errors.Join(err, printJSON(cmd.OutOrStdout(), s))
	}
	s.writeText(cmd.OutOrStdout())
	return err
}

// greet says what will happen.
func (f *demoFlags) greet(w io.Writer, s *server) {
	fmt.Fprintf(w, "dueq demo: %s events, each due at a random time within %v\n", digits.Group(f.events), f.spread)
	fmt.Fprintf(w, "Redis: %s\n", s.name)
	if s.embedded != nil {
		fmt.Fprint(w, "       It keeps nothing: all is in memory, and gone when the demo ends.\n"+
			"       With --redis redis://localhost:6379 the demo runs on a server of yours.\n")
	}
	fmt.Fprintln(w)
}

// finish gives what has to be done at the end its own time, even if ctx has ended.
func finish(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return do(ctx)
}
