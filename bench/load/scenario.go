package load

import (
	"context"
	"fmt"
	"io"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// scenario measures one thing: a row per measurement. With an error come the
// rows that were finished.
type scenario func(ctx context.Context, e *env) ([]measure.Row, error)

// entry is a scenario as the usage lists it.
type entry struct {
	name     string
	does     string
	standard bool // run when none is named
	run      scenario
}

func scenarios() []entry {
	return []entry{
		{"publish", "PublishEvent from 1 and 64 callers, PublishEvents, against raw HSET+ZADD", true, publish},
		{"drain", "a backlog that is due, handled as fast as it goes, against raw commands", true, drain},
		{"steady", "events at a fixed rate, 1 to 5 s ahead: lateness", true, steady},
		{"mixed", "publish due events and handle them at the same time", false, mixed},
		{"idle", "what 0 to 1,000 topics without events cost Redis", false, idle},
		{"cliff", "a million events due in the same second: lateness, slowest Redis command", false, cliff},
		{"growth", "cost of publish, carry and cancel with up to 5,000,000 events pending", false, growth},
		{"memory", "Redis memory per pending event", false, memory},
		{"counter", "write-behind counters: a million publishes to 10,000 ids with KeyKeep", false, counter},
	}
}

// choose finds scenarios by name, in the order of the list.
func choose(names []string) ([]entry, error) {
	wanted := make(map[string]bool)
	for _, name := range names {
		wanted[name] = true
	}
	all := wanted["all"]
	delete(wanted, "all")
	var chosen []entry
	for _, s := range scenarios() {
		if all || wanted[s.name] || len(names) == 0 && s.standard {
			chosen = append(chosen, s)
		}
		delete(wanted, s.name)
	}
	for name := range wanted {
		return nil, fmt.Errorf("no scenario %q", name)
	}
	return chosen, nil
}

// env is what the scenarios work with, and what they have found.
type env struct {
	settings
	progress io.Writer
	version  string // of the server
	rows     []measure.Row
	charts   []chart
}

func (e *env) runAll(ctx context.Context, chosen []entry) error {
	for _, s := range chosen {
		rows, err := s.run(ctx, e)
		for i := range rows {
			rows[i].Scenario = s.name
		}
		e.rows = append(e.rows, rows...)
		if err == nil {
			err = checkRows(rows)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// size is how many events a measurement takes.
func (e *env) size(full, short int) int {
	switch {
	case e.n > 0:
		return e.n
	case e.short:
		return short
	}
	return full
}

// say reports progress.
func (e *env) say(format string, args ...any) {
	fmt.Fprintf(e.progress, format+"\n", args...)
}
