package history

// event is all that a history tells of one id.
type event struct {
	topic, id string
	pubs      []*publication
	runs      []*run
	changes   []*change
	left      []Record
}

// publication is one publish.
type publication struct {
	Record
	span    // to: when its outcome was known
	outcome Outcome
}

// mayHold reports whether the publication may have had an effect.
func (p *publication) mayHold() bool { return p.outcome != Refused }

// run is one call of a handler or, if Kind is Persist, of the PersistFn.
type run struct {
	Record
	span            // to: when it returned, or its process ended
	outcome Outcome // "": it never returned
	ended   bool    // its ctx had ended when it returned
	endedAt int64   // when its ctx ended, if that is known
	delay   int64   // ns until the retry, if its error asked for one

	// What follows is of runs in a consumer's hand.
	visible int64   // when the visibility time is over: forever if handlers run
	wanted  Outcome // what its caller wanted
	settled Outcome // what its caller was told; "": nothing
	told    int64   // when
	lapsed  bool    // the visibility time ended it
}

// pulled reports whether a consumer claimed the event.
func (r *run) pulled() bool { return r.Visible > 0 }

// failed reports whether the run has used up an attempt by itself.
func (r *run) failed() bool { return (r.outcome == Failed || r.outcome == Skip) && !r.ended }

// final reports whether there should be no run after this one.
func (r *run) final() bool { return r.failed() && (r.outcome == Skip || r.Attempt >= r.Max) }

// change is a cancel or a reschedule, or a requeue that the event may have met
// when it was dead.
type change struct {
	Record
	span
	outcome Outcome
}

// pub finds a publication by its name.
func (e *event) pub(name string) *publication {
	for _, p := range e.pubs {
		if p.Pub == name {
			return p
		}
	}
	return nil
}

// kept reports whether a publish that keeps what is there, another than the one
// named, may have had its effect in the given stretch.
func (e *event) kept(name string, from, to int64) bool {
	for _, p := range e.pubs {
		if p.Pub != name && p.Policy == "keep" && p.mayHold() && p.meets(from, to) {
			return true
		}
	}
	return false
}

// moved reports whether a reschedule or a requeue may have had its effect in the
// given stretch.
func (e *event) moved(from, to int64) bool {
	for _, c := range e.changes {
		if c.Kind != Cancel && c.outcome != Refused && c.meets(from, to) {
			return true
		}
	}
	return false
}

type key struct{ topic, id string }

// opKey names an operation.
type opKey struct {
	proc string
	op   int64
}

// index sorts records by event.
type index struct {
	events map[key]*event
	order  []*event
	pubs   map[string]*publication
	list   []*publication
	runs   map[opKey]*run
	open   map[opKey]*change
	desk   *desk
	x      *excuses
}

func newIndex(records []Record, x *excuses) *index {
	ix := &index{
		events: make(map[key]*event), pubs: make(map[string]*publication),
		runs: make(map[opKey]*run), open: make(map[opKey]*change), desk: newDesk(), x: x,
	}
	for _, r := range records {
		ix.add(r)
	}
	for _, p := range ix.list {
		if p.ID != "" {
			e := ix.event(p.Topic, p.ID)
			e.pubs = append(e.pubs, p)
		}
	}
	for _, e := range ix.order {
		sortByStart(e.pubs, func(p *publication) int64 { return p.from })
		sortByStart(e.runs, func(r *run) int64 { return r.from })
		for _, r := range e.runs {
			ix.close(r)
		}
		ix.desk.meet(e)
	}
	return ix
}

func (ix *index) event(topic, id string) *event {
	k := key{topic, id}
	e := ix.events[k]
	if e == nil {
		e = &event{topic: topic, id: id}
		ix.events[k] = e
		ix.order = append(ix.order, e)
	}
	return e
}

// add takes in one record; they come sorted by time.
func (ix *index) add(r Record) {
	switch r.Kind {
	case Publish:
		p := &publication{Record: r, span: span{r.At, forever}, outcome: Unknown}
		ix.pubs[r.Pub] = p
		ix.list = append(ix.list, p)
	case Published:
		if p := ix.pubs[r.Pub]; p != nil {
			p.outcome = r.Outcome
			if p.ID == "" {
				p.ID = r.ID
			}
			if r.Outcome != Unknown {
				p.to = r.At
			}
		}
	case Handle, Persist:
		d := &run{Record: r, span: span{r.At, forever}, endedAt: forever, visible: forever}
		if d.pulled() {
			d.visible = r.At + r.Visible*millisecond
		}
		ix.runs[opKey{r.Proc, r.Op}] = d
		e := ix.event(r.Topic, r.ID)
		e.runs = append(e.runs, d)
		if p := ix.pubs[r.Pub]; p != nil && p.ID == "" { // its publisher was never told the id
			p.ID = r.ID
		}
	case Handled, Persisted, ContextEnded, Extended, Settled:
		ix.end(r)
	case Cancel, Reschedule:
		c := &change{Record: r, span: span{r.At, forever}, outcome: Unknown}
		ix.open[opKey{r.Proc, r.Op}] = c
		e := ix.event(r.Topic, r.ID)
		e.changes = append(e.changes, c)
	case Cancelled, Rescheduled:
		if c := ix.open[opKey{r.Proc, r.Op}]; c != nil {
			c.outcome = r.Outcome
			if r.Outcome != Unknown {
				c.to = r.At
			}
		}
	case Left:
		e := ix.event(r.Topic, r.ID)
		e.left = append(e.left, r)
		if p := ix.pubs[r.Pub]; p != nil && p.ID == "" {
			p.ID = r.ID
		}
	default:
		ix.desk.add(r)
	}
}

// end takes in how a run ended.
func (ix *index) end(r Record) {
	d := ix.runs[opKey{r.Proc, r.Op}]
	if d == nil {
		return
	}
	switch r.Kind {
	case ContextEnded:
		d.endedAt = min(d.endedAt, r.At)
	case Extended:
		d.visible = r.At + r.Visible*millisecond
	case Settled:
		d.settled, d.told, d.ended = r.Outcome, r.At, d.ended || r.Ended
	default:
		d.to, d.outcome, d.ended, d.delay = r.At, r.Outcome, r.Ended, r.Delay*millisecond
		d.wanted = r.Outcome
	}
}

// close ends a run that has not returned, with its process.
func (ix *index) close(r *run) {
	p := ix.x.procs[r.Proc]
	if p == nil {
		return
	}
	if r.to == forever {
		r.to = p.to
	}
	if r.to > p.cut {
		r.endedAt = min(r.endedAt, p.cut)
	}
	if r.pulled() && r.settled != OK && (r.outcome == "" || r.settled == Refused) {
		r.lapse(p)
	}
}
