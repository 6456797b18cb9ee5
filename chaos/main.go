// Command chaos runs worker processes under load while it breaks everything
// around them, and then checks, from what all of them have recorded, that every
// guarantee was kept.
//
// It exits with 0, 1 when a guarantee was not kept or the run failed, 2 when it
// was called wrongly, and 130 when it was interrupted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	logging.Disable() // the client's own lines: what matters comes back as an error
	if len(os.Args) == 3 && os.Args[1] == workerFlag {
		os.Exit(runWorker(os.Args[2], os.Stdin, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	shape    shape
	duration time.Duration
	seed     uint64
	workers  int
	rate     int
	faults   faultNames
	json     string
	verbose  bool
}

const shortDuration = time.Minute

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return exitUsage
	}
	r, err := chaos(ctx, s, stderr)
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "chaos: interrupted")
		return exitInterrupted
	}
	if err == nil {
		r.print(stdout)
		err = r.save(s.json)
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return exitFailed
	}
	if !r.clean() {
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (settings, error) {
	s := settings{shape: single, faults: faultNames{"all"}}
	short := false
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&s.shape, "redis", "`shape`: single; sentinel: a master with a replica and three sentinels; cluster: three masters with a replica each")
	f.DurationVar(&s.duration, "duration", 10*time.Minute, "how long faults are made; setting up, draining and checking come on top")
	f.Uint64Var(&s.seed, "seed", 0, "`number` from which the plan of faults is made; 0 is a random one, which is printed")
	f.IntVar(&s.workers, "workers", 3, "`processes` that publish and handle, 1 to 16")
	f.IntVar(&s.rate, "rate", 200, "`events` that all workers together publish a second")
	f.Var(&s.faults, "faults", "`names` of the faults to make, separated by commas; \"all\" or \"none\"")
	f.StringVar(&s.json, "json", "", "write the report to this `file` too, as JSON")
	f.BoolVar(&short, "short", false, "a quick pass, about 90 s in all, unless -duration says otherwise")
	f.BoolVar(&s.verbose, "v", false, "print each fault to stderr")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(f, stderr)
		return s, err
	}
	given := make(map[string]bool)
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	if short && !given["duration"] {
		s.duration = shortDuration
	}
	if err == nil {
		err = s.check(f.Args())
	}
	if err != nil {
		return s, fmt.Errorf("%w (-h shows how to call it)", err)
	}
	for s.seed == 0 {
		s.seed = rand.Uint64N(1 << 32)
	}
	return s, nil
}

func (s *settings) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q", rest[0])
	case s.duration < time.Second || s.duration > 24*time.Hour:
		return fmt.Errorf("-duration is %v, not from 1s to 24h", s.duration)
	case s.workers < 1 || s.workers > 16:
		return fmt.Errorf("-workers is %d, not from 1 to 16", s.workers)
	case s.rate < 1 || s.rate > 5000:
		return fmt.Errorf("-rate is %d, not from 1 to 5000", s.rate)
	}
	possible := s.shape.faults()
	if slices.Equal(s.faults, faultNames{"all"}) {
		s.faults = possible
	}
	for _, name := range s.faults {
		if !slices.Contains(possible, name) {
			return fmt.Errorf("there is no fault %q with -redis %s", name, s.shape)
		}
	}
	return nil
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `Usage: chaos [flags]

Starts a redis-server with an append-only file, worker processes that each reach
it through a proxy of their own, and load: events of several topics that are
published one by one and in batches, under ids of their own and under kept and
replaced keys, cancelled and rescheduled, and whose handlers succeed, fail, panic,
are slow and give up. Of each worker's topics one has no handlers: its events are
claimed, and acked, retried, failed, given back, extended, acked too late, or left
to their visibility time. An operator pauses topics and resumes them, requeues
what is dead, and lists events. The lease is 2 s. Then it makes faults, by a plan
that only the seed decides. At the end it makes no more of them, waits until all that is due
is handled, and checks the histories of all processes: nothing lost, nothing early,
one holder at a time, nothing after a cancel, nothing twice but for a fault that
excuses it, nothing while its topic is paused, no claim that ends before its time,
and attempts counted right; meanwhile, again and again, that every id in Redis lies
in exactly one place.

In the second third of the time Redis syncs its file once a second instead of
always: what it may lose then is counted, and not a violation.

With -redis sentinel or cluster there are servers that take over from each other,
and keep nothing on disk. There are no proxies: such servers say themselves where
they are. In a cluster each topic has four partitions. Every other worker publishes
with Replicas: 1. What it was told is stored must survive whatever happens to a
master; what others published shortly before a server took over, or before the old
master was a replica, may be lost and is counted, and acks, cancels and pauses of
that time may be undone. A planned failover and the move of a slot must lose nothing
at all.

Faults, with the shapes of Redis that have them:

`)
	for _, k := range faultKinds {
		only := ""
		if k.on != nil {
			only = fmt.Sprint(" ", k.on)
		}
		fmt.Fprintf(w, "  %-12s %s%s\n", k.name, k.does, only)
	}
	fmt.Fprint(w, `
The histories are kept in a temporary folder, whose name is printed, if a
guarantee was not kept. With -faults none it is an endurance run, which also looks
at the workers' memory and goroutines.

Flags:

`)
	f.SetOutput(w)
	f.PrintDefaults()
}

// faultNames is a flag: faults by name.
type faultNames []string

func (n *faultNames) String() string {
	if len(*n) == 0 {
		return "none"
	}
	return strings.Join(*n, ",")
}

// Set is flag.Value's.
func (n *faultNames) Set(text string) error {
	*n = nil
	switch text {
	case "all":
		*n = faultNames{text}
		return nil
	case "none":
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if _, ok := findFault(name); !ok {
			return fmt.Errorf("there is no fault %q", name)
		}
		*n = append(*n, name)
	}
	return nil
}

// save writes the report as JSON, if a file is named.
func (r *report) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
