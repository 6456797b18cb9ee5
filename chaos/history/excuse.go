package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// forever is when something ended that never did.
const forever = math.MaxInt64

// everySecLoss is how much a server with appendfsync everysec may lose: a second,
// and another while the disk is slow.
const everySecLoss = 2 * int64(time.Second)

// takeoverLoss is for how long what a master confirms may be on its way to its
// replica: far less, unless the machine is busy.
const takeoverLoss = 2 * int64(time.Second)

// span is a stretch of time, in ns since 1970, both ends included.
type span struct{ from, to int64 }

func (s span) meets(from, to int64) bool { return s.from <= to && s.to >= from }

// process is what happened to one process.
type process struct {
	span
	lease int64
	died  int64  // when it was killed, or stopped without its outcomes: forever if it was not
	cut   int64  // when a shutdown ended its handlers' contexts: forever if none did
	mute  []span // when it was silent for so long that its session may have ended
}

// excuses are the faults of a run.
type excuses struct {
	procs map[string]*process
	undo  []undo
}

// undo is a stretch of which what took effect may have been undone.
type undo struct {
	span
	spares bool // what a replica had confirmed
}

// newExcuses reads the records of processes and faults.
func newExcuses(records []Record) *excuses {
	x := &excuses{procs: make(map[string]*process)}
	faults := openFaults(records)
	for _, r := range records {
		switch r.Kind {
		case Started:
			x.procs[r.Proc] = &process{
				span: span{r.At, forever}, lease: r.Delay * int64(time.Millisecond), died: forever, cut: forever,
			}
		case Stopping:
			if p := x.procs[r.Proc]; p != nil {
				p.cut = r.At + r.Delay*int64(time.Millisecond)
			}
		case Stopped:
			if p := x.procs[r.Proc]; p != nil {
				p.to = r.At
				if r.Outcome == Failed {
					p.died = min(p.died, r.At)
				}
			}
		}
	}
	for _, f := range faults {
		switch f.Name {
		case Kill:
			if p := x.procs[f.Target]; p != nil {
				p.died, p.to = min(p.died, f.from), min(p.to, f.to)
			}
		case ServerKill, Takeover:
			x.addUndo(f)
		}
	}
	for name, p := range x.procs {
		p.mute = silences(name, p, faults)
	}
	return x
}

// fault is one fault with its duration.
type fault struct {
	Record
	span
}

func openFaults(records []Record) []fault {
	type op struct {
		proc string
		n    int64
	}
	var faults []fault
	at := make(map[op]int)
	for _, r := range records {
		switch r.Kind {
		case Fault:
			at[op{r.Proc, r.Op}] = len(faults)
			faults = append(faults, fault{r, span{r.At, forever}})
		case Healed:
			if i, ok := at[op{r.Proc, r.Op}]; ok {
				faults[i].to = r.At
			}
		case Stalled:
			r.Name = silent
			faults = append(faults, fault{r, span{r.At - r.Delay*int64(time.Millisecond), r.At}})
		}
	}
	return faults
}

func (x *excuses) addUndo(f fault) {
	switch {
	case f.Name == Takeover && f.Mode == Planned:
	case f.Name == Takeover: // until all is well again the old master may take writes, too
		x.undo = append(x.undo, undo{span{f.from - takeoverLoss, f.to}, true})
	case f.Mode == EverySec:
		x.undo = append(x.undo, undo{span{f.from - everySecLoss, f.to}, false})
	case f.Mode == None:
		x.undo = append(x.undo, undo{span{0, f.to}, false})
	}
}

// silences are the stretches in which a process may have lost its session. Its
// lease is extended three times in its course, and a call that hangs is given up
// only after a quarter of it: so a disturbance of a tenth of the lease may be too
// much, and disturbances with less than half a lease between them count as one.
func silences(name string, p *process, faults []fault) []span {
	var all []span
	for _, f := range faults {
		if f.disturbing() && hits(f.Target, name) && f.meets(p.from-p.lease, p.to) {
			all = append(all, f.span)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var merged []span
	for _, s := range all {
		if n := len(merged); n > 0 && s.from-merged[n-1].to < p.lease/2 {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return slices.DeleteFunc(merged, func(s span) bool { return s.to-s.from < p.lease/10 })
}

// hits reports whether a fault of target hits a process: "w1" is all processes
// that were started in its place, "w1.1" and so on.
func hits(target, proc string) bool {
	return target == "" || target == proc || strings.HasPrefix(proc, target+".")
}

// lease is a process's lease.
func (x *excuses) lease(proc string) int64 {
	if p := x.procs[proc]; p != nil {
		return p.lease
	}
	return 0
}

// mayLose reports whether a process may have died, or lost its session, at some
// time in the given stretch.
func (x *excuses) mayLose(proc string, from, to int64) bool {
	p := x.procs[proc]
	if p == nil {
		return false
	}
	return p.died >= from && p.died <= to ||
		slices.ContainsFunc(p.mute, func(s span) bool { return s.meets(from, to) })
}

// mayBeStale reports whether what a process begins at the given time may be
// something that it has no lease for any more.
func (x *excuses) mayBeStale(proc string, at int64) bool {
	return x.mayLose(proc, at-x.lease(proc), at)
}

// killed reports whether a run never returned because its process was killed, and
// not because it was shut down.
func (x *excuses) killed(r *run) bool {
	p := x.procs[r.Proc]
	return r.outcome == "" && p != nil && p.died != forever && p.cut == forever
}

// losses is how many sessions may have ended by force in the given stretch.
func (x *excuses) losses(from, to int64) int {
	n := 0
	for _, p := range x.procs {
		if p.died != forever && p.died >= from-p.lease && p.died <= to {
			n++
		}
		for _, s := range p.mute {
			if s.meets(from-p.lease, to) {
				n++
			}
		}
	}
	return n
}

// undone reports whether something that took effect in the given stretch may
// have been undone.
func (x *excuses) undone(from, to int64) bool {
	return slices.ContainsFunc(x.undo, func(u undo) bool { return u.meets(from, to) })
}

// unpublished reports whether a publication that was acknowledged may have been
// undone.
func (x *excuses) unpublished(p *publication) bool {
	return slices.ContainsFunc(x.undo, func(u undo) bool { return u.meets(p.from, p.to) && (!u.spares || p.Replicas == 0) })
}

// share is how much of the processes' time, up to the given end, lay in stretches
// in which they may have lost their sessions.
func (x *excuses) share(end int64) float64 {
	var silent, all float64
	for _, p := range x.procs {
		to := min(p.to, end)
		all += float64(to - p.from)
		for _, s := range p.mute {
			silent += float64(max(0, min(s.to, to)-max(s.from, p.from)))
		}
	}
	if all == 0 {
		return 0
	}
	return silent / all
}
