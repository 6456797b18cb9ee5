// Package load measures dueq on a Redis server that it starts itself, or on a
// given one.
package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// settings are the flags.
type settings struct {
	redis   *redis.Options // nil: fresh servers
	n       int
	rates   rates
	short   bool
	json    bool
	svg     string
	verbose bool
}

// Run runs the scenarios that args name, by default the standard ones, and
// prints what they found to stdout and their progress to stderr. name is what the
// user has called. It returns the exit code: 0, 1 when a measurement failed or a
// guarantee did not hold, 2 when args are wrong, and 130 when ctx ended.
func Run(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	var s settings
	chosen, err := parse(name, args, &s, stderr)
	if err == nil {
		e := &env{settings: s, progress: stderr}
		err = e.runAll(ctx, chosen)
		err = errors.Join(err, e.report(stdout))
	}
	return measure.ExitCode(ctx, name, err, stderr)
}

func parse(name string, args []string, s *settings, stderr io.Writer) ([]entry, error) {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Func("redis", "`address` (host:port, or a redis://, rediss:// or unix:// URL) of a server that serves nothing\n"+
		"else meanwhile; without it, each measurement gets a fresh redis-server on a loopback port", s.setRedis)
	f.IntVar(&s.n, "n", 0, "`events` per measurement, instead of what the scenario is made for")
	f.Var(&s.rates, "rate", "events/s of scenario steady: `rates`, separated by commas (default 200,2000,10000)")
	f.BoolVar(&s.short, "short", false, "a quick pass: small sizes, short times")
	f.BoolVar(&s.json, "json", false, "print JSON instead of a table")
	f.Func("o", "the same as the verbs of dueq have it: print in this `format`, table or json", s.setFormat)
	f.StringVar(&s.svg, "svg", "", "write charts (SVG) into this `folder`")
	f.BoolVar(&s.verbose, "v", false, "print the queue's own log to stderr")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(f, stderr)
		return nil, err
	}
	var chosen []entry
	switch {
	case err != nil:
	case s.n < 0:
		err = fmt.Errorf("-n is %d", s.n)
	default:
		chosen, err = choose(f.Args())
	}
	if err != nil {
		return nil, measure.UsageError{Err: err}
	}
	return chosen, nil
}

// setRedis takes the address of a server.
func (s *settings) setRedis(address string) error {
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	o, err := redis.ParseURL(address)
	s.redis = o
	return err
}

// setFormat takes the form in which to print.
func (s *settings) setFormat(format string) error {
	if format != "table" && format != "json" {
		return errors.New("it is not table or json")
	}
	s.json = format == "json"
	return nil
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, "Usage: "+f.Name()+" [flags] [scenario ...]\n\nScenarios, by default those marked with *; 'all' is all of them:\n\n")
	for _, s := range scenarios() {
		mark := ' '
		if s.standard {
			mark = '*'
		}
		fmt.Fprintf(w, "  %c %-8s %s\n", mark, s.name, s.does)
	}
	fmt.Fprint(w, `
Bodies have 128 bytes, and the queue its default options. Redis µs and client µs
are CPU time per event of the server and of this process, which plays publishers
and subscribers and does the measuring. Lateness is the handler's start less the
time asked for, to the nanosecond (a queue with whole milliseconds is half of one
late on average); early counts handlers that started before it. "timer+PING" is
how late a bare timer and a PING were meanwhile: what the machine is to blame for.

Flags:

`)
	f.SetOutput(w)
	f.PrintDefaults()
}

// rates is a flag: events per second, separated by commas.
type rates []int

func (r *rates) String() string {
	texts := make([]string, len(*r))
	for i, n := range *r {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// Set is flag.Value's.
func (r *rates) Set(text string) error {
	*r = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a rate", part)
		}
		*r = append(*r, n)
	}
	return nil
}
