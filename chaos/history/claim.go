package history

import "time"

// timerSlack is how much a visibility time may seem shorter or longer than it was: the
// consumer's caller notes when it begins and the queue when it ends, each as soon
// as it gets to run.
const timerSlack = int64(250 * time.Millisecond)

// late reports whether the run could not be settled though its visibility time was
// not over.
func (r *run) late() bool { return r.settled == Refused && r.to < r.visible-timerSlack }

// lapse decides what became of a run in a consumer's hand whose caller did not
// settle it, or came too late.
func (r *run) lapse(p *process) {
	switch {
	case r.late(), r.visible > min(p.cut, p.died)-timerSlack:
		if r.outcome != "" {
			r.outcome, r.ended = Failed, true
		}
	default: // the queue has failed it, to come again at once
		r.lapsed, r.ended = true, false
		r.to, r.outcome, r.delay = r.visible, Failed, 0
	}
	r.endedAt = min(r.endedAt, r.visible-timerSlack)
}

// claims checks that a consumer's caller can settle an event as long as its
// visibility time lasts, and no longer.
func (c *checker) claims(e *event) {
	for _, r := range e.runs {
		if !r.pulled() {
			continue
		}
		lease := c.x.lease(r.Proc)
		switch {
		case r.settled == OK && r.to > r.visible+timerSlack && !c.x.mayLose(r.Proc, r.from-lease, r.to):
			c.violated("lease", e, "%s settled attempt %d %v after its visibility time", r.Proc, r.Attempt, since(r.visible, r.to))
		case r.late() && !c.mayEnd(r, r.told):
			c.violated("lease", e, "%s could not settle attempt %d any more, %v before its visibility time was over",
				r.Proc, r.Attempt, since(r.to, r.visible))
		case r.endedAt < min(r.to, r.visible-timerSlack) && !c.mayEnd(r, r.endedAt):
			c.violated("lease", e, "%s lost attempt %d %v before its visibility time was over",
				r.Proc, r.Attempt, since(r.endedAt, r.visible))
		}
	}
}

// mayEnd reports whether the lease of a run may have ended by the given time,
// before its visibility time.
func (c *checker) mayEnd(r *run, at int64) bool {
	from := r.from - c.x.lease(r.Proc)
	p := c.x.procs[r.Proc]
	return p == nil || at >= p.cut-timerSlack || c.x.mayLose(r.Proc, from, at) || c.x.undone(from, at)
}
