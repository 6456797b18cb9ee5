package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// reference is the system that the others are compared with.
const reference = "dueq"

// comparison is what has been measured so far.
type comparison struct {
	settings
	progress io.Writer
	outcomes map[[2]string][]outcome // by scenario and system, one per round
	servers  map[string]string       // by system
	missing  map[string]string       // why systems are not measured
}

func newComparison(s settings, progress io.Writer) *comparison {
	c := &comparison{
		settings: s, progress: progress,
		outcomes: make(map[[2]string][]outcome), servers: make(map[string]string), missing: make(map[string]string),
	}
	for _, sys := range s.systems {
		if sys.missing != nil && sys.missing() != "" {
			c.missing[sys.name] = sys.missing()
		}
	}
	return c
}

// measureAll makes all measurements, round by round. A measurement that failed
// keeps none of the others from being made, only ctx does.
func (c *comparison) measureAll(ctx context.Context) error {
	var errs []error
	for round := range c.rounds {
		for _, sc := range c.scenarios {
			for _, sys := range c.systems {
				if !sys.can(sc.name) || c.missing[sys.name] != "" {
					continue
				}
				said, err := c.measure(ctx, sc, sys)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				fmt.Fprintf(c.progress, "round %d of %d: %-8s %-10s %s\n", round+1, c.rounds, sc.name, sys.name, said)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// measure makes one measurement, and says in short what came of it.
func (c *comparison) measure(ctx context.Context, sc scenario, sys system) (said string, err error) {
	start := time.Now()
	out, err := job{sys.name, sc.name, c.sizing}.measure(ctx)
	if err != nil {
		return "failed", fmt.Errorf("%s, %s: %w", sc.name, sys.name, err)
	}
	at := [2]string{sc.name, sys.name}
	c.outcomes[at] = append(c.outcomes[at], out)
	c.servers[sys.name] = out.Server
	return fmt.Sprintf("%s (%v)", headline(sc, out), time.Since(start).Round(time.Second/10)), nil
}

// headline is the first figure that is good or bad.
func headline(sc scenario, out outcome) string {
	for _, f := range sc.figures {
		if v, ok := out.Values[f.name]; ok && f.good != neither {
			return f.show(v) + " " + f.label()
		}
	}
	return ""
}

func (f figure) label() string {
	if f.unit == "" {
		return f.name
	}
	return f.unit + ", " + f.name
}

// values are a figure's values, one per round in which it was measured.
func (c *comparison) values(scenario, system, figure string) []float64 {
	var values []float64
	for _, out := range c.outcomes[[2]string{scenario, system}] {
		if v, ok := out.Values[figure]; ok {
			values = append(values, v)
		}
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ahead is by what factor the reference is better, 0 if that makes no sense.
func (c *comparison) ahead(scenario, system string, f figure) float64 {
	own, peer := c.values(scenario, reference, f.name), c.values(scenario, system, f.name)
	if system == reference || f.good == neither || len(own) == 0 || len(peer) == 0 {
		return 0
	}
	if f.good == more {
		return measure.Ratio(median(own), median(peer))
	}
	return measure.Ratio(median(peer), median(own))
}
