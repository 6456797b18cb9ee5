package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

// report is what a run has shown.
type report struct {
	Seed     uint64   `json:"seed"`
	Redis    shape    `json:"redis"`
	Duration string   `json:"duration"`
	Workers  int      `json:"workers"`
	Rate     int      `json:"rate"`
	Faults   []string `json:"faultsAllowed"`
	Took     string   `json:"took"`

	*history.Result
	Checks   int      `json:"conservationChecks"`
	Breaches []string `json:"breaches"` // of conservation, workers that ended by themselves, and growth
	Growth   []growth `json:"growth"`   // of workers that lived long enough to tell

	Histories string `json:"histories,omitempty"` // where they lie, if something is wrong
}

// judge checks all that was recorded.
func (a *arena) judge(records []history.Record, began time.Time) *report {
	r := &report{
		Seed: a.seed, Redis: a.shape, Duration: a.duration.String(), Workers: a.workers, Rate: a.rate, Faults: slices.Concat([]string{}, a.faults),
		Result: history.Check(records), Checks: a.checks, Breaches: slices.Concat([]string{}, a.breaches),
	}
	r.Growth = growths(records)
	for _, g := range r.Growth {
		if g.grew() {
			r.Breaches = append(r.Breaches, "growth: "+g.String())
		}
	}
	r.Took = time.Since(began).Round(time.Second).String()
	if !r.clean() {
		r.Histories = a.dir
	}
	return r
}

func (r *report) clean() bool { return len(r.Violations)+len(r.Breaches) == 0 }

// print writes the report for people.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "chaos: seed %d, redis %s, %s with %d workers and %d events/s; %s in all\n\n", r.Seed, r.Redis, r.Duration, r.Workers, r.Rate, r.Took)
	for _, line := range []struct {
		name string
		n    int
		what string
	}{
		{"published", r.Stored, fmt.Sprintf("and acknowledged, %d of them by a replica, too", r.Confirmed)},
		{"alone", r.Alone, "stored, and not known to be on a replica"},
		{"unknown", r.Unknown, "publishes whose caller was not told the outcome"},
		{"refused", r.Refused, "publishes: the key exists, or Redis was full or away"},
		{"delivered", r.Delivered, fmt.Sprintf("times: %d acked, %d failed, %d cut off", r.Acked, r.Failed, r.Unfinished)},
		{"claimed", r.Claimed, fmt.Sprintf("of these, by consumers: %d given back, %d left to their visibility time", r.Released, r.Lapsed)},
		{"late", r.Late, "outcomes of consumers, which changed nothing"},
		{"duplicates", r.Duplicates, "deliveries after an ack, each excused by a fault"},
		{"persisted", r.Persisted, "failed for good and taken by the PersistFn"},
		{"dead", r.Dead, "failed for good and left in Redis"},
		{"cancelled", r.Cancelled, ""},
		{"rescheduled", r.Rescheduled, ""},
		{"pauses", r.Pauses, "of a topic"},
		{"requeued", r.Requeued, "of the dead, by the operator"},
		{"listed", r.Listed, ""},
		{"lost", r.Lost, "within what appendfsync everysec and failovers allow"},
		{"stalls", r.Stalls, "times a process or the server was silent, for whatever reason"},
		{"excused", int(100 * r.Excused), "% of the workers' time, in which a fault may have cost them their leases"},
		{"checks", r.Checks, "of conservation"},
	} {
		fmt.Fprintf(w, "  %-12s %8d  %s\n", line.name, line.n, line.what)
	}
	if len(r.DuplicatesBy) > 0 {
		fmt.Fprintln(w, "\nduplicates, because after a handler had succeeded")
	}
	for _, why := range slices.Sorted(maps.Keys(r.DuplicatesBy)) {
		fmt.Fprintf(w, "  %-38s %6d\n", why, r.DuplicatesBy[why])
	}
	fmt.Fprintln(w, "\nfaults")
	for _, name := range slices.Sorted(maps.Keys(r.Result.Faults)) {
		fmt.Fprintf(w, "  %-12s %8d\n", name, r.Result.Faults[name])
	}
	if len(r.Growth) > 0 {
		fmt.Fprintln(w)
	}
	for _, g := range r.Growth {
		fmt.Fprintln(w, g)
	}
	if r.clean() {
		fmt.Fprintf(w, "\nno violations in %d records of %d events\n", r.Records, r.Events)
		return
	}
	r.printViolations(w)
}

func (r *report) printViolations(w io.Writer) {
	const shown = 5
	fmt.Fprintf(w, "\n%d VIOLATIONS, %d breaches of other kinds; the histories are in %s\n", len(r.Violations), len(r.Breaches), r.Histories)
	for _, b := range r.Breaches[:min(len(r.Breaches), 50)] {
		fmt.Fprintln(w, "  "+b)
	}
	for i, v := range r.Violations[:min(len(r.Violations), 50)] {
		fmt.Fprintln(w, "  "+v.String())
		if i >= shown || len(v.Records) == 0 {
			continue
		}
		from := v.Records[0].At
		for _, rec := range v.Records {
			fmt.Fprintf(w, "      %9.3fs %s\n", time.Duration(rec.At-from).Seconds(), rec)
		}
	}
}

// growth is what a worker used in the second quarter of its life and in the
// last: at most, in each.
type growth struct {
	Worker         string `json:"worker"`
	HeapThen       uint64 `json:"heapThen"` // bytes
	HeapNow        uint64 `json:"heapNow"`
	GoroutinesThen int    `json:"goroutinesThen"`
	GoroutinesNow  int    `json:"goroutinesNow"`
}

// growths are those of the workers that lived for a minute or more.
func growths(records []history.Record) []growth {
	const least = int(time.Minute / samplePeriod)
	samples := make(map[string][]history.Record)
	for _, r := range records {
		if r.Kind == history.Sampled {
			samples[r.Proc] = append(samples[r.Proc], r)
		}
	}
	all := []growth{}
	for _, worker := range slices.Sorted(maps.Keys(samples)) {
		list := samples[worker]
		n := len(list)
		if n < least {
			continue
		}
		g := growth{Worker: worker}
		g.HeapThen, g.GoroutinesThen = peak(list[n/4 : n/2])
		g.HeapNow, g.GoroutinesNow = peak(list[3*n/4:])
		all = append(all, g)
	}
	return all
}

func peak(samples []history.Record) (heap uint64, goroutines int) {
	for _, s := range samples {
		heap, goroutines = max(heap, s.Heap), max(goroutines, s.Goroutines)
	}
	return heap, goroutines
}

// grew reports whether a worker uses so much more than before that it cannot be
// chance.
func (g growth) grew() bool {
	return g.HeapNow > g.HeapThen*3/2+32<<20 || g.GoroutinesNow > g.GoroutinesThen*3/2+200
}

// String is one line.
func (g growth) String() string {
	return fmt.Sprintf("worker %s: heap %.1f MB, later %.1f MB; %d goroutines, later %d",
		g.Worker, float64(g.HeapThen)/(1<<20), float64(g.HeapNow)/(1<<20), g.GoroutinesThen, g.GoroutinesNow)
}
