package history

import "slices"

// origin checks that what is delivered was published, and not refused.
func (c *checker) origin(e *event) {
	for _, r := range e.runs {
		p := e.pub(r.Pub)
		switch {
		case p == nil:
			c.violated("origin", e, "attempt %d in %s is of publication %q, which nobody made", r.Attempt, r.Proc, r.Pub)
		case p.from > r.from:
			c.violated("origin", e, "attempt %d in %s began before its publication %s", r.Attempt, r.Proc, r.Pub)
		case !p.mayHold():
			c.violated("origin", e, "attempt %d in %s is of publication %s, which was refused", r.Attempt, r.Proc, r.Pub)
		}
	}
}

// loss checks that every publication that was acknowledged has come to an end,
// or lies in Redis.
func (c *checker) loss(e *event) {
	for _, l := range e.left {
		if l.State == Stuck {
			c.violated("stuck", e, "due, and still not handled at the end: %s", l.Text)
		}
	}
	for _, p := range e.pubs {
		if p.outcome != OK || c.settled(e, p) {
			continue
		}
		if c.x.unpublished(p) {
			c.result.Lost++
			continue
		}
		c.violated("loss", e, "publication %s was stored, and neither handled, persisted, cancelled nor dead", p.Pub)
	}
}

// settled reports whether an acknowledged publication has come to an end that
// it may have.
func (c *checker) settled(e *event, p *publication) bool {
	// is reports whether what was published as name is what p has become.
	is := func(name string) bool {
		return name == p.Pub || p.Policy == "keep" || e.supersedes(name, p)
	}
	for _, r := range e.runs {
		if r.outcome == OK && r.from >= p.from && is(r.Pub) {
			return true
		}
	}
	for _, ch := range e.changes {
		if ch.Kind == Cancel && ch.outcome != Refused && ch.to >= p.from {
			return true
		}
	}
	if slices.ContainsFunc(e.left, func(l Record) bool { return is(l.Pub) }) {
		return true
	}
	for _, q := range e.pubs {
		if q != p && q.mayHold() && (q.Policy == "replace" && q.from >= p.from || e.wasDead(p, q)) {
			return true
		}
	}
	return false
}

// supersedes reports whether the publication called name may have taken the
// place of p.
func (e *event) supersedes(name string, p *publication) bool {
	q := e.pub(name)
	return q != nil && q != p && q.to >= p.from && (q.Policy == "replace" || e.wasDead(p, q))
}

// wasDead reports whether q may have been published when what p has become lay
// among the dead.
func (e *event) wasDead(p, q *publication) bool {
	if q == p || !q.mayHold() {
		return false
	}
	for _, r := range e.runs {
		if r.Kind == Persist && r.outcome != OK && r.from >= p.from && q.to >= r.from && (r.Pub == p.Pub || p.Policy == "keep") {
			return true
		}
	}
	return false
}

// duplicates checks that nothing is delivered after an ack, unless the ack can
// have been lost.
func (c *checker) duplicates(e *event) {
	for i, r := range e.runs {
		if r.outcome != OK {
			continue
		}
		next := slices.IndexFunc(e.runs[i+1:], func(n *run) bool { return n.Pub == r.Pub && n.from > r.to })
		if next < 0 {
			continue
		}
		n := e.runs[i+1+next]
		lease := c.x.lease(r.Proc)
		if e.kept(r.Pub, r.from-lease, n.from) {
			continue // it was asked to run again
		}
		c.result.Duplicates++
		if why := c.lostAck(r, n); why != "" {
			c.result.DuplicatesBy[why]++
			continue
		}
		c.violated("duplicate", e, "attempt %d in %s was acked, and %s began attempt %d %v later, without a fault",
			r.Attempt, r.Proc, n.Proc, n.Attempt, since(r.to, n.from))
	}
}

// lostAck is why n could follow r, though the handler had succeeded: "" if there
// is no reason.
func (c *checker) lostAck(r, n *run) string {
	lease := c.x.lease(r.Proc)
	p := c.x.procs[r.Proc]
	acked := r.to + lease/2 // at the latest
	switch {
	case r.settled == OK: // nothing but the server can lose it
		acked = r.told
	case r.ended || r.endedAt <= r.to:
		return "its ctx had ended"
	case p != nil && p.died >= r.from && p.died <= r.to+lease/2:
		return "its process died"
	case c.x.mayLose(r.Proc, r.from-lease, r.to+lease/2):
		return "its process lost its session"
	}
	switch {
	case c.x.mayBeStale(n.Proc, n.from):
		return "the next process had lost its session"
	case c.x.undone(r.to, min(acked, n.from)):
		return "the server lost it"
	}
	return ""
}
