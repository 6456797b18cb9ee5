package history

// lists checks the pages that the operator got.
func (c *checker) lists(ix *index) {
	for _, all := range ix.desk.pauses {
		c.result.Pauses += len(all)
	}
	for _, l := range ix.desk.pages {
		for i, s := range l.seen {
			e := ix.events[key{s.Topic, s.ID}]
			if e == nil {
				e = &event{topic: s.Topic, id: s.ID}
			}
			if s.Topic != l.Topic || s.State != l.State {
				c.violated("list", e, "a list of what is %s in topic %s has what is %s in topic %s", l.State, l.Topic, s.State, s.Topic)
			}
			if i > 0 && !inOrder(l.seen[i-1], s) {
				c.violated("list", e, "in a list of what is %s it comes after id %s", l.State, l.seen[i-1].ID)
			}
			c.listed(e, l, s)
		}
	}
}

// inOrder reports whether b may follow a on a page. What is leased comes session by
// session, of which the records do not know.
func inOrder(a, b Record) bool {
	switch b.State {
	case Scheduled:
		return a.Due <= b.Due
	case Dead:
		return a.Due >= b.Due
	}
	return true
}

// listed checks that what is listed was published, and had not come to an end.
func (c *checker) listed(e *event, l *list, s Record) {
	p := e.pub(s.Pub)
	switch {
	case p == nil:
		c.violated("list", e, "it is listed as publication %q, which nobody made: %s", s.Pub, s.Text)
		return
	case p.from > s.At || !p.mayHold():
		c.violated("list", e, "it is listed as publication %s, which was refused, or made later", s.Pub)
		return
	}
	for _, r := range e.runs {
		if r.Pub == s.Pub && r.outcome == OK && c.ackedBy(r) < l.At && !e.kept(r.Pub, r.from-c.x.lease(r.Proc), s.At) && !c.x.undone(r.from, s.At) {
			c.violated("list", e, "it is listed %v after its ack", since(r.to, l.At))
		}
	}
	for _, ch := range e.changes {
		if ch.Kind == Cancel && ch.outcome == OK && ch.to < l.At && p.outcome == OK && p.to < ch.from && !c.x.undone(ch.from, s.At) {
			c.violated("list", e, "it is listed %v after its cancel", since(ch.to, l.At))
		}
	}
}

// ackedBy is when Redis had the ack of a run at the latest, or forever if that
// is not certain.
func (c *checker) ackedBy(r *run) int64 {
	lease := c.x.lease(r.Proc)
	switch {
	case r.settled == OK:
		return r.told
	case r.ended || r.endedAt <= r.to || r.pulled() || c.x.mayLose(r.Proc, r.from-lease, r.to+lease/2):
		return forever
	}
	return r.to + lease/2
}
