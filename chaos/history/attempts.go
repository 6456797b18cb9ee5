package history

import "strconv"

// attempts checks the number of each attempt: one more than those before that
// failed, or whose process died, and never more than the most there may be.
func (c *checker) attempts(e *event) {
	last := make(map[string]*run)    // by publication
	persist := make(map[string]*run) // since the last run
	skipped := make(map[string]bool) // a run wanted no more attempts
	for _, r := range e.runs {
		p := e.pub(r.Pub)
		if p == nil || c.x.mayBeStale(r.Proc, r.from) && last[r.Pub] != nil && r.Attempt <= last[r.Pub].Attempt {
			continue // a late starter, with the number it was claimed with
		}
		if r.Kind == Persist {
			c.persisted(e, p, r, skipped[r.Pub])
			persist[r.Pub] = r
			continue
		}
		if r.Attempt > r.Max {
			c.violated("attempt", e, "%s began attempt %d of %d", r.Proc, r.Attempt, r.Max)
		}
		prev := last[r.Pub]
		low, high := 1, 1+c.x.losses(p.from, r.from)
		if prev != nil {
			low, high = c.bounds(e, prev, persist[r.Pub], r)
		}
		if r.Attempt < low || r.Attempt > high {
			c.violated("attempt", e, "%s began attempt %d of publication %s, want %s", r.Proc, r.Attempt, r.Pub, between(low, high))
		}
		last[r.Pub] = r
		delete(persist, r.Pub)
		skipped[r.Pub] = skipped[r.Pub] || r.wanted == Skip
	}
}

// bounds are the least and the most that the number of r can be, after prev and
// perhaps a persist.
func (c *checker) bounds(e *event, prev, persist, r *run) (low, high int) {
	lease := c.x.lease(prev.Proc)
	low = prev.Attempt
	high = prev.Attempt + c.x.losses(prev.from-lease, r.from)
	// A PersistFn that was interrupted leaves the event as it was claimed.
	interrupted := persist != nil && (persist.ended || persist.outcome == "")
	if c.x.killed(prev) {
		low++ // its lease could end in one way only
	}
	if prev.outcome == Failed || prev.outcome == Skip {
		high++
		if prev.failed() && prev.to <= r.from && !interrupted {
			low++
		}
	}
	if prev.outcome == "" && prev.visible-timerSlack <= r.from {
		high++ // it was over shortly before its process died
	}
	anew := e.kept(r.Pub, prev.from-lease, r.from) || e.moved(prev.to, r.from)
	if prev.final() && prev.to <= r.from && !interrupted && !anew &&
		!c.x.mayLose(prev.Proc, prev.from-lease, prev.to+lease/2) && !c.x.undone(prev.to, r.from) {
		c.violated("attempt", e, "%s began attempt %d though attempt %d had failed for good", r.Proc, r.Attempt, prev.Attempt)
	}
	if anew || c.x.undone(prev.from-lease, r.from) {
		low = 1
	}
	return low, high
}

// persisted checks that an event had used up its attempts when the PersistFn
// got it.
func (c *checker) persisted(e *event, p *publication, r *run, skipped bool) {
	if r.Attempt < r.Max && !skipped && !c.x.undone(p.from, r.from) {
		c.violated("attempt", e, "the PersistFn in %s got attempt %d of %d", r.Proc, r.Attempt, r.Max)
	}
	if most := r.Max + c.x.losses(p.from, r.from); r.Attempt > most {
		c.violated("attempt", e, "the PersistFn in %s got attempt %d of %d", r.Proc, r.Attempt, r.Max)
	}
}

// between is a range in words.
func between(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return strconv.Itoa(low) + " to " + strconv.Itoa(high)
}
