package history

import "time"

const millisecond = int64(time.Millisecond)

func since(from, to int64) time.Duration { return time.Duration(to - from) }

// early checks that nothing is delivered before the time that was asked for it.
func (c *checker) early(e *event) {
	last := make(map[string]*run)
	for _, r := range e.runs {
		if r.Kind == Persist {
			continue
		}
		if due := r.Due * millisecond; r.from < due {
			c.violated("early", e, "attempt %d in %s began %v before its time", r.Attempt, r.Proc, since(r.from, due))
		}
		if !c.asked(e, r) {
			c.violated("early", e, "attempt %d in %s was due at %d ms, which nobody asked for", r.Attempt, r.Proc, r.Due)
		}
		// The server's clock counts whole milliseconds.
		if prev := last[r.Pub]; prev != nil && prev.failed() && r.Attempt == prev.Attempt+1 && prev.to <= r.from &&
			r.from < prev.to+prev.delay-millisecond && !c.hurried(e, prev, r) {
			c.violated("early", e, "attempt %d in %s began %v after attempt %d failed, which had asked for %v",
				r.Attempt, r.Proc, since(prev.to, r.from), prev.Attempt, time.Duration(prev.delay))
		}
		last[r.Pub] = r
	}
}

// hurried reports whether the retry of prev may have come before its pause was
// over.
func (c *checker) hurried(e *event, prev, r *run) bool {
	lease := c.x.lease(prev.Proc)
	return c.x.mayLose(prev.Proc, prev.from-lease, prev.to+lease/2) || c.x.mayBeStale(r.Proc, r.from) ||
		e.kept(r.Pub, prev.from-lease, r.from) || e.moved(prev.to, r.from) || c.x.undone(prev.to, r.from)
}

// asked reports whether somebody asked for the time at which a run was due.
func (c *checker) asked(e *event, r *run) bool {
	after := int64(0) // what was asked for earlier does not count any more
	for _, ch := range e.changes {
		if ch.Kind == Reschedule && ch.outcome == OK && ch.to < r.from && !c.x.mayBeStale(r.Proc, r.from) && !c.x.undone(ch.from, r.from) {
			after = max(after, ch.from)
		}
	}
	for _, p := range e.pubs {
		if p.mayHold() && p.from <= r.from && p.to >= after && p.Due == r.Due {
			return true
		}
	}
	for _, ch := range e.changes {
		if ch.Kind != Cancel && ch.outcome != Refused && ch.from <= r.from && ch.to >= after && ch.Due == r.Due {
			return true
		}
	}
	return false
}

// holders checks that no two runs of an event overlap while the first one's
// lease is valid.
func (c *checker) holders(e *event) {
	for i, r := range e.runs {
		for _, n := range e.runs[i+1:] {
			if n.from >= r.to || c.released(r, n.from) || c.x.mayBeStale(n.Proc, n.from) {
				continue
			}
			c.violated("holder", e, "attempt %d began in %s while attempt %d ran in %s, since %v",
				n.Attempt, n.Proc, r.Attempt, r.Proc, since(r.from, n.from))
		}
	}
}

// released reports whether the lease of a run may have ended by the given time.
func (c *checker) released(r *run, at int64) bool {
	lease := c.x.lease(r.Proc)
	return r.ended || r.endedAt <= at || c.x.mayLose(r.Proc, r.from-lease, at) || c.x.undone(r.from-lease, at)
}

// changes checks that nothing is delivered once its cancel was acknowledged, and
// that nobody changes an event that a handler has.
func (c *checker) changes(e *event) {
	for _, ch := range e.changes {
		if ch.outcome != OK {
			continue
		}
		for _, r := range e.runs {
			if r.from < ch.from && r.to > ch.to && !c.released(r, ch.to) {
				c.violated("change", e, "%s succeeded while %s ran attempt %d", ch.Kind, r.Proc, r.Attempt)
			}
		}
		if ch.Kind == Cancel {
			c.cancelled(e, ch)
		}
	}
}

// cancelled checks that the event stays cancelled.
func (c *checker) cancelled(e *event, ch *change) {
	for _, r := range e.runs {
		p := e.pub(r.Pub)
		if r.from > ch.to && p != nil && p.outcome == OK && p.to < ch.from &&
			!c.x.mayBeStale(r.Proc, r.from) && !c.x.undone(ch.from, r.from) {
			c.violated("cancel", e, "%s began attempt %d of publication %s %v after its cancel was acknowledged",
				r.Proc, r.Attempt, r.Pub, since(ch.to, r.from))
			return
		}
	}
}
