// Command peers measures dueq beside other queues with delays, each on fresh
// servers that it starts itself.
//
// It exits with 0, 1 when a measurement failed, 2 when it was called wrongly, and
// 130 when it was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

func main() { measure.Main(run) }

// settings are the flags, and what they choose.
type settings struct {
	sizing
	rounds    int
	json      bool
	systems   []system
	scenarios []scenario
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == childFlag {
		return runChild(ctx, args[1], stdout, stderr)
	}
	s, err := parse(args, stderr)
	if err == nil {
		c := newComparison(s, stderr)
		err = c.measureAll(ctx)
		err = errors.Join(err, c.print(stdout))
	}
	return measure.ExitCode(ctx, "peers", err, stderr)
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	names := f.String("systems", "", "measure only these `systems`, separated by commas")
	f.IntVar(&s.rounds, "rounds", 3, "how `often` to make each measurement; the table shows medians")
	f.IntVar(&s.N, "n", 0, "`events` per measurement, instead of what the scenario is made for")
	f.BoolVar(&s.Short, "short", false, "a quick pass: small sizes, short times")
	f.BoolVar(&s.json, "json", false, "print JSON, with each round's figures, instead of tables")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(f, stderr)
		return s, err
	}
	switch {
	case err != nil:
	case s.N < 0:
		err = fmt.Errorf("-n is %d", s.N)
	case s.rounds < 1:
		err = fmt.Errorf("-rounds is %d", s.rounds)
	default:
		if *names == "" {
			s.systems = systems()
		} else {
			s.systems, err = choose("system", strings.Split(*names, ","), systems(), system.title)
		}
		if err == nil {
			s.scenarios, err = choose("scenario", f.Args(), scenarios(), scenario.title)
		}
	}
	if err != nil {
		return s, measure.UsageError{Err: err}
	}
	return s, nil
}

// choose finds things by name, in the order of the list; no names are all.
func choose[T any](what string, names []string, list []T, title func(T) string) ([]T, error) {
	if len(names) == 0 {
		return list, nil
	}
	wanted := make(map[string]bool)
	for _, name := range names {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []T
	for _, t := range list {
		if wanted[title(t)] {
			chosen = append(chosen, t)
		}
		delete(wanted, title(t))
	}
	for name := range wanted {
		return nil, fmt.Errorf("no %s %q", what, name)
	}
	return chosen, nil
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, "Usage: go run . [flags] [scenario ...]\n\nScenarios, by default all:\n\n")
	for _, s := range scenarios() {
		fmt.Fprintf(w, "  %-10s %s\n", s.name, s.does)
	}
	fmt.Fprint(w, "\nSystems, by default all:\n\n")
	for _, s := range systems() {
		fmt.Fprintf(w, "  %-10s %s\n", s.name, s.settings)
	}
	fmt.Fprint(w, `
Every measurement runs in a process of its own, with a fresh server of its own;
each round takes all systems in turn, so that a machine that gets slower is unkind
to all. Bodies have 128 bytes. Server and client CPU are CPU time of the server and
of the measuring process, which plays publishers and handlers. Lateness is the
handler's start less the time asked for; early counts handlers that started before
it (as if on time in the percentiles), repeated counts deliveries beyond the first.
A measurement fails unless every event arrives. Three rounds of everything take
about half an hour.

In brackets is how far dueq is ahead: its rate over the peer's, or the peer's cost
over its own. Below 1 the peer is ahead. "–" is what a system cannot do.

What the figures do not say: naive loses events when a process dies, raw has no
handlers, asynq takes whole seconds and cuts the rest off (events are up to a second
early), beanstalkd takes whole seconds (rounded up here) and is no Redis. Events
that are due when they are published skip the schedule in asynq and beanstalkd,
which makes drain and mixed cheaper for them.

Flags:

`)
	f.SetOutput(w)
	f.PrintDefaults()
}
