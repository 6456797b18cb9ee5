package history

import (
	"strings"
	"time"
)

// inFlight is how long a call whose outcome its caller does not know may take to
// have its effect: longer than any fault.
const inFlight = int64(10 * time.Second)

// desk is what the operator did to topics.
type desk struct {
	pauses   map[string][]span // by topic: when it was paused for certain
	doubtful map[string]int64  // by topic: until when a resume may have its effect
	requeues map[opKey]*change
	order    []*change
	lists    map[opKey]*list
	pages    []*list
}

// list is one page.
type list struct {
	Record
	seen []Record
}

func newDesk() *desk {
	return &desk{
		pauses: make(map[string][]span), doubtful: make(map[string]int64),
		requeues: make(map[opKey]*change), lists: make(map[opKey]*list),
	}
}

// add takes in one record; they come sorted by time.
func (d *desk) add(r Record) {
	op := opKey{r.Proc, r.Op}
	switch r.Kind {
	case Paused:
		if r.Outcome == OK && d.doubtful[r.Topic] < r.At {
			d.pauses[r.Topic] = append(d.pauses[r.Topic], span{r.At, forever})
		}
	case Resume:
		if all := d.pauses[r.Topic]; len(all) > 0 {
			last := &all[len(all)-1]
			last.to = min(last.to, r.At)
		}
	case Resumed:
		if r.Outcome == Unknown {
			d.doubtful[r.Topic] = r.At + inFlight
		}
	case Requeue:
		q := &change{Record: r, span: span{r.At, forever}, outcome: Unknown}
		d.requeues[op] = q
		d.order = append(d.order, q)
	case Requeued:
		if q := d.requeues[op]; q != nil {
			q.outcome = r.Outcome
			if r.Outcome != Unknown {
				q.to = r.At
			}
		}
	case List:
		l := &list{Record: r}
		d.lists[op] = l
		d.pages = append(d.pages, l)
	case Seen:
		if l := d.lists[op]; l != nil {
			l.seen = append(l.seen, r)
		}
	}
}

// takes reports whether a requeue is of the event's topic, and for its id.
func (q *change) takes(e *event) bool {
	return q.Topic == e.topic && strings.HasPrefix(e.id, q.Name)
}

// meet notes with an event the requeues that it may have met when it was dead.
func (d *desk) meet(e *event) {
	died := int64(forever)
	for _, r := range e.runs {
		if r.Kind == Persist && r.outcome != OK {
			died = min(died, r.from)
		}
	}
	for _, q := range d.order {
		if q.takes(e) && q.to >= died {
			met := *q
			met.outcome = Unknown // it may have been alive again by then
			e.changes = append(e.changes, &met)
		}
	}
}

// stillDead checks that what was dead for certain when a requeue began did not
// stay so.
func (c *checker) stillDead(e *event, d *desk) {
	var last *run
	for _, r := range e.runs {
		if r.Kind == Persist {
			last = r
		}
	}
	dead := false
	for _, l := range e.left {
		dead = dead || l.State == Dead
	}
	if !dead || last == nil || last.outcome != Failed || last.ended {
		return
	}
	lease := c.x.lease(last.Proc)
	if c.x.mayLose(last.Proc, last.from-lease, last.to+lease) {
		return // Redis may have heard of it much later
	}
	for _, q := range d.order {
		if q.takes(e) && q.outcome == OK && q.from > last.to+lease && !c.x.undone(last.to, q.to) {
			c.violated("requeue", e, "it died %v before a requeue, and lies among the dead all the same", since(last.to, q.from))
			return
		}
	}
}

// paused checks that nothing is delivered while its topic is paused, but for
// what was claimed before.
func (c *checker) paused(e *event, d *desk) {
	for _, s := range d.pauses[e.topic] {
		for _, r := range e.runs {
			waits := c.x.lease(r.Proc) // for a handler, at most
			if r.pulled() {
				waits /= 2 // for the claim's reply
			}
			if r.Kind == Handle && r.from > s.from+waits && r.from < s.to && !c.x.mayBeStale(r.Proc, r.from) && !c.x.undone(s.from, r.from) {
				c.violated("pause", e, "%s began attempt %d %v after the topic was paused", r.Proc, r.Attempt, since(s.from, r.from))
			}
		}
	}
}
