package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is a guarantee that was not kept.
type Violation struct {
	Rule    string   `json:"rule"` // loss, early, holder, change, cancel, duplicate, attempt, origin, stuck, lease, pause, requeue, list
	Topic   string   `json:"topic"`
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Records []Record `json:"records"` // what the history tells of the id, and the faults meanwhile
}

// String is one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: topic %s, id %s: %s", v.Rule, v.Topic, v.ID, v.Text)
}

// Result is what a history tells.
type Result struct {
	Records     int `json:"records"`
	Events      int `json:"events"`    // different ids
	Stored      int `json:"stored"`    // publishes that were acknowledged
	Confirmed   int `json:"confirmed"` // of these, those that a replica had to confirm
	Alone       int `json:"alone"`     // publishes that were stored, but not known to be on a replica
	Refused     int `json:"refused"`   // publishes that had no effect: a duplicate id, or a full server
	Unknown     int `json:"unknown"`   // publishes whose outcome their caller does not know
	Delivered   int `json:"delivered"`
	Acked       int `json:"acked"`
	Failed      int `json:"failed"`     // deliveries with an error
	Unfinished  int `json:"unfinished"` // deliveries whose process died
	Persisted   int `json:"persisted"`
	Duplicates  int `json:"duplicates"` // deliveries after an ack, all excused by a fault
	Claimed     int `json:"claimed"`    // deliveries to consumers, of those above
	Lapsed      int `json:"lapsed"`     // of these, those whose visibility time passed
	Released    int `json:"released"`   // of these, those given back
	Late        int `json:"late"`       // outcomes of consumers that came too late
	Cancelled   int `json:"cancelled"`
	Rescheduled int `json:"rescheduled"`
	Pauses      int `json:"pauses"`   // of a topic, that it was for certain
	Requeued    int `json:"requeued"` // dead events, by the operator
	Listed      int `json:"listed"`   // events on pages
	Dead        int `json:"dead"`
	Waiting     int `json:"waiting"`
	Lost        int `json:"lost"` // stored, and undone by a server that does not keep everything

	DuplicatesBy map[string]int `json:"duplicatesBy"` // reason

	Faults     map[string]int `json:"faults"`
	Stalls     int            `json:"stalls"`  // a process or the server was silent, for whatever reason
	Excused    float64        `json:"excused"` // part of the processes' time in which they may have lost their sessions by a fault
	Violations []Violation    `json:"violations"`
}

// maxShown is how many violations come with their records.
const maxShown = 20

// checker checks one history.
type checker struct {
	x      *excuses
	result *Result
}

// Check checks a history: all records of all processes. It sorts them.
func Check(records []Record) *Result {
	sortByTime(records)
	c := &checker{x: newExcuses(records), result: &Result{
		Records: len(records), Faults: make(map[string]int), DuplicatesBy: make(map[string]int), Violations: []Violation{},
	}}
	if n := len(records); n > 0 {
		c.result.Excused = c.x.share(records[n-1].At)
	}
	ix := newIndex(records, c.x)
	c.count(records, ix)
	for _, e := range ix.order {
		c.origin(e)
		c.loss(e)
		c.early(e)
		c.holders(e)
		c.changes(e)
		c.duplicates(e)
		c.attempts(e)
		c.claims(e)
		c.stillDead(e, ix.desk)
		c.paused(e, ix.desk)
	}
	c.lists(ix)
	for i := range min(len(c.result.Violations), maxShown) {
		v := &c.result.Violations[i]
		v.Records = evidence(records, v.Topic, v.ID)
	}
	return c.result
}

func (c *checker) violated(rule string, e *event, format string, args ...any) {
	c.result.Violations = append(c.result.Violations, Violation{
		Rule: rule, Topic: e.topic, ID: e.id, Text: fmt.Sprintf(format, args...),
	})
}

// count fills in the figures that need no check.
func (c *checker) count(records []Record, ix *index) {
	r := c.result
	for _, rec := range records {
		switch rec.Kind {
		case Fault:
			r.Faults[rec.Name]++
		case Stalled:
			r.Stalls++
		case Requeued:
			r.Requeued += rec.Count
		case Seen:
			r.Listed++
		case Left:
			switch rec.State {
			case Dead:
				r.Dead++
			case Waiting:
				r.Waiting++
			}
		}
	}
	for _, p := range ix.list {
		r.countPublication(p)
	}
	r.Events = len(ix.order)
	for _, e := range ix.order {
		for _, d := range e.runs {
			r.countRun(d)
		}
		for _, ch := range e.changes {
			if ch.outcome == OK && ch.Kind == Cancel {
				r.Cancelled++
			} else if ch.outcome == OK {
				r.Rescheduled++
			}
		}
	}
}

func (r *Result) countPublication(p *publication) {
	switch p.outcome {
	case OK:
		r.Stored++
		if p.Replicas > 0 {
			r.Confirmed++
		}
	case Alone:
		r.Alone++
	case Refused:
		r.Refused++
	default:
		r.Unknown++
	}
}

func (r *Result) countRun(d *run) {
	if d.Kind == Persist {
		if d.outcome == OK {
			r.Persisted++
		}
		return
	}
	r.Delivered++
	r.countPulled(d)
	switch d.outcome {
	case OK:
		r.Acked++
	case "":
		r.Unfinished++
	case Released:
		r.Released++
	default:
		r.Failed++
	}
}

func (r *Result) countPulled(d *run) {
	if d.pulled() {
		r.Claimed++
	}
	if d.lapsed {
		r.Lapsed++
	}
	if d.settled == Refused {
		r.Late++
	}
}

// evidence is what is told of an id, and the faults from shortly before to
// shortly after.
func evidence(records []Record, topic, id string) []Record {
	const around = 5e9
	var own []Record
	pubs := make(map[string]bool)
	for _, r := range records {
		if r.Topic == topic && r.ID == id {
			own = append(own, r)
			pubs[r.Pub] = true
		}
	}
	if len(own) == 0 {
		return nil
	}
	from, to := own[0].At-around, own[len(own)-1].At+around
	var all []Record
	for _, r := range records {
		fault := r.Kind == Fault || r.Kind == Healed || r.Kind == Stalled || r.Kind == Noted && (r.ID == "" || r.ID == id)
		life := r.Kind == Started || r.Kind == Stopping || r.Kind == Stopped
		if r.Topic == topic && r.ID == id || r.Kind == Publish && r.Pub != "" && pubs[r.Pub] ||
			(fault || life) && r.At >= from && r.At <= to {
			all = append(all, r)
		}
	}
	const most = 400
	if len(all) > most {
		all = append(all[:most/2:most/2], all[len(all)-most/2:]...)
	}
	return all
}

func sortByStart[T any](list []T, start func(T) int64) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(start(a), start(b)) })
}
