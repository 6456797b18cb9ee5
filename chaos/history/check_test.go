package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

// story is a history made by hand. Times are ms since its beginning.
type story struct {
	records []history.Record
	ops     int64
	due     map[string]int64 // by publication
}

const (
	began = 1_700_000_000_000 // ms
	lease = 2000
)

func newStory() *story {
	s := &story{due: make(map[string]int64)}
	for _, proc := range []string{"a.1", "b.1"} {
		s.add(0, history.Record{Proc: proc, Kind: history.Started, Delay: lease})
	}
	return s
}

func (s *story) add(at int64, r history.Record) {
	r.At = (began + at) * int64(time.Millisecond)
	s.records = append(s.records, r)
}

func (s *story) op() int64 {
	s.ops++
	return s.ops
}

// pair adds two records of one operation; without a second time only the first.
func (s *story) pair(at, end int64, r history.Record, kind history.Kind, o history.Outcome) int64 {
	r.Op = s.op()
	s.add(at, r)
	if end > 0 {
		r.Kind, r.Outcome = kind, o
		s.add(end, r)
	}
	return r.Op
}

func (s *story) publish(at, end int64, pub, id string, due int64, policy string, o history.Outcome) {
	s.due[pub] = began + due
	s.pair(at, end, history.Record{
		Proc: "a.1", Kind: history.Publish, Topic: "t", ID: id, Pub: pub, Due: began + due, Policy: policy,
	}, history.Published, o)
}

// stored publishes an event x, as publication p, at 0 for the time 100.
func (s *story) stored() { s.publish(0, 10, "p", "x", 100, "", history.OK) }

func (s *story) handle(at, end int64, proc, pub, id string, attempt int, o history.Outcome) int64 {
	return s.pair(at, end, history.Record{
		Proc: proc, Kind: history.Handle, Topic: "t", ID: id, Pub: pub, Due: s.due[pub], Attempt: attempt, Max: 3,
	}, history.Handled, o)
}

// run handles x.
func (s *story) run(at, end int64, proc string, attempt int, o history.Outcome) int64 {
	return s.handle(at, end, proc, "p", "x", attempt, o)
}

// lapsed is a run whose ctx has ended before it returns.
func (s *story) lapsed(at, end int64, proc string, attempt int, o history.Outcome) {
	s.run(at, end, proc, attempt, o)
	s.records[len(s.records)-1].Ended = true
}

func (s *story) persist(at, end int64, proc string, attempt int, o history.Outcome) {
	s.pair(at, end, history.Record{
		Proc: proc, Kind: history.Persist, Topic: "t", ID: "x", Pub: "p", Attempt: attempt, Max: 3,
	}, history.Persisted, o)
}

func (s *story) cancel(at, end int64, o history.Outcome) {
	s.pair(at, end, history.Record{Proc: "b.1", Kind: history.Cancel, Topic: "t", ID: "x"}, history.Cancelled, o)
}

func (s *story) reschedule(at, end, due int64, o history.Outcome) {
	s.pair(at, end, history.Record{
		Proc: "b.1", Kind: history.Reschedule, Topic: "t", ID: "x", Due: began + due,
	}, history.Rescheduled, o)
}

func (s *story) fault(from, to int64, name, target, mode string) {
	s.pair(from, to, history.Record{
		Proc: "chaos", Kind: history.Fault, Name: name, Target: target, Mode: mode,
	}, history.Healed, "")
}

func (s *story) left(state string) {
	s.add(60_000, history.Record{Proc: "chaos", Kind: history.Left, Topic: "t", ID: "x", Pub: "p", State: state})
}

type brokenStory struct {
	name, rule string
	tell       func(s *story)
}

// broken are histories in each of which one rule is broken.
var broken = []brokenStory{
	{"never delivered", "loss", func(s *story) { s.stored() }},
	{"only failed", "loss", func(s *story) {
		s.stored()
		s.run(200, 210, "a.1", 1, history.Failed)
	}},
	{"cut off and not delivered again", "loss", func(s *story) {
		s.stored()
		s.fault(220, 240, history.Kill, "a.1", "")
		s.run(200, 0, "a.1", 1, "")
	}},
	{"lost by a server that keeps everything", "loss", func(s *story) {
		s.stored()
		s.fault(50, 500, history.ServerKill, "", history.Always)
	}},
	{"lost long before a server lost its last second", "loss", func(s *story) {
		s.stored()
		s.fault(5000, 5500, history.ServerKill, "", history.EverySec)
	}},
	{"cancelled before it was published", "loss", func(s *story) {
		s.cancel(1, 2, history.OK)
		s.publish(5, 10, "p", "x", 100, "", history.OK)
	}},
	{"cancel refused", "loss", func(s *story) {
		s.stored()
		s.cancel(20, 30, history.Refused)
	}},
	{"the second of two keys is lost", "loss", func(s *story) {
		s.publish(0, 10, "p", "x", 100, "replace", history.OK)
		s.publish(20, 30, "q", "x", 200, "replace", history.OK)
		s.run(150, 160, "a.1", 1, history.OK)
	}},
	{"a keep during the run, and no run after it", "loss", func(s *story) {
		s.publish(0, 10, "p", "x", 100, "keep", history.OK)
		s.run(150, 300, "a.1", 1, history.OK)
		s.publish(200, 210, "q", "x", 100, "keep", history.OK)
	}},
	{"too early", "early", func(s *story) {
		s.stored()
		s.run(99, 110, "a.1", 1, history.OK)
	}},
	{"retried too early", "early", func(s *story) {
		s.stored()
		s.run(100, 110, "a.1", 1, history.Failed)
		s.records[len(s.records)-1].Delay = 50
		s.run(150, 160, "a.1", 2, history.OK)
	}},
	{"rescheduled, and delivered at the old time", "early", func(s *story) {
		s.stored()
		s.reschedule(20, 30, 500, history.OK)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"two holders", "holder", func(s *story) {
		s.stored()
		s.run(100, 300, "a.1", 1, history.Failed)
		s.run(200, 250, "b.1", 2, history.OK)
	}},
	{"two holders after a short stop", "holder", func(s *story) {
		s.stored()
		s.run(100, 3000, "a.1", 1, history.Failed)
		s.fault(500, 600, "pause", "a.1", "")
		s.run(700, 750, "b.1", 2, history.OK)
	}},
	{"two holders after somebody else was stopped", "holder", func(s *story) {
		s.stored()
		s.add(0, history.Record{Proc: "c.1", Kind: history.Started, Delay: lease})
		s.run(100, 9000, "a.1", 1, history.Failed)
		s.fault(500, 5000, "freeze", "c.1", "")
		s.run(5500, 5600, "b.1", 2, history.OK)
	}},
	{"delivered after its cancel", "cancel", func(s *story) {
		s.stored()
		s.cancel(20, 30, history.OK)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"cancelled while it was handled", "change", func(s *story) {
		s.stored()
		s.run(110, 200, "a.1", 1, history.OK)
		s.cancel(120, 130, history.OK)
	}},
	{"rescheduled while it was handled", "change", func(s *story) {
		s.stored()
		s.run(110, 200, "a.1", 1, history.OK)
		s.reschedule(120, 130, 500, history.OK)
	}},
	{"delivered after its ack", "duplicate", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.run(150, 160, "a.1", 1, history.OK)
	}},
	{"delivered after its ack, long before a kill", "duplicate", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.fault(9000, 9010, history.Kill, "a.1", "")
		s.run(12_000, 12_010, "b.1", 2, history.OK)
	}},
	{"delivered after its ack, and a fault that nobody feels", "duplicate", func(s *story) {
		s.stored()
		s.fault(100, 2000, "full", "", "")
		s.run(110, 120, "a.1", 1, history.OK)
		s.run(150, 160, "a.1", 1, history.OK)
	}},
	{"delivered after it was persisted", "duplicate", func(s *story) {
		s.stored()
		for i := range 3 {
			s.run(int64(110+20*i), int64(120+20*i), "a.1", i+1, history.Failed)
		}
		s.persist(180, 190, "a.1", 3, history.OK)
		s.persist(300, 310, "b.1", 3, history.OK)
	}},
	{"an attempt that does not count", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.run(150, 160, "a.1", 1, history.OK)
	}},
	{"an attempt that counts twice", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.run(150, 160, "a.1", 3, history.OK)
	}},
	{"killed, and not counted", "attempt", func(s *story) {
		s.stored()
		s.run(110, 0, "a.1", 1, "")
		s.fault(200, 210, history.Kill, "a.1", "")
		s.run(2300, 2310, "b.1", 1, history.OK)
	}},
	{"given back, and counted", "attempt", func(s *story) {
		s.stored()
		s.add(100, history.Record{Proc: "a.1", Kind: history.Stopping, Delay: 50})
		s.run(110, 0, "a.1", 1, "")
		s.add(200, history.Record{Proc: "a.1", Kind: history.Stopped, Outcome: history.OK})
		s.run(250, 260, "b.1", 2, history.OK)
	}},
	{"the first is the second", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 2, history.OK)
	}},
	{"more than there may be", "attempt", func(s *story) {
		s.stored()
		for i := range 4 {
			s.run(int64(110+20*i), int64(120+20*i), "a.1", i+1, history.Failed)
		}
		s.left(history.Dead)
	}},
	{"again after it failed for good", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Skip)
		s.run(150, 160, "a.1", 2, history.OK)
	}},
	{"given up too soon", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.persist(130, 140, "a.1", 1, history.OK)
	}},
	{"never published", "origin", func(s *story) { s.run(110, 120, "a.1", 1, history.OK) }},
	{"refused, and delivered", "origin", func(s *story) {
		s.publish(0, 10, "p", "x", 100, "reject", history.Refused)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"due and not handled", "stuck", func(s *story) {
		s.stored()
		s.left(history.Stuck)
	}},
}

func TestBroken(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(broken, brokenClaims, brokenDesks, brokenTakeovers) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory()
			c.tell(s)
			got := rules(history.Check(s.records))
			want := []string{c.rule}
			if c.name == "never published" || c.name == "refused, and delivered" {
				got = slices.DeleteFunc(got, func(r string) bool { return r == "early" }) // nobody asked for its time either
			}
			if !slices.Equal(got, want) {
				t.Errorf("violations of %v, want %v", got, want)
			}
		})
	}
}

func rules(r *history.Result) []string {
	var names []string
	for _, v := range r.Violations {
		names = append(names, v.Rule)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type soundStory struct {
	name       string
	duplicates int
	lost       int
	tell       func(s *story)
}

// sound are histories with a fault that excuses what happens in them.
var sound = []soundStory{
	{"no fault", 0, 0, func(s *story) {
		s.stored()
		s.run(100, 110, "a.1", 1, history.Failed)
		s.run(160, 170, "b.1", 2, history.OK)
	}},
	{"still waiting", 0, 0, func(s *story) {
		s.stored()
		s.left(history.Waiting)
	}},
	{"refused", 0, 0, func(s *story) { s.publish(0, 10, "p", "x", 100, "reject", history.Refused) }},
	{"unknown, and gone", 0, 0, func(s *story) { s.publish(0, 10, "p", "x", 100, "", history.Unknown) }},
	{"unknown, and delivered", 0, 0, func(s *story) {
		s.publish(0, 0, "p", "", 100, "", "")
		s.run(100, 110, "a.1", 1, history.OK)
	}},
	{"persisted", 0, 0, func(s *story) {
		s.stored()
		for i := range 3 {
			s.run(int64(110+20*i), int64(120+20*i), "a.1", i+1, history.Failed)
		}
		s.persist(180, 190, "a.1", 3, history.OK)
	}},
	{"dead", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Skip)
		s.persist(130, 140, "a.1", 1, history.Failed)
		s.left(history.Dead)
	}},
	{"dead, and rescheduled", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Skip)
		s.persist(130, 140, "a.1", 1, history.Failed)
		s.reschedule(200, 210, 300, history.OK)
		s.handle(310, 320, "a.1", "p", "x", 1, history.OK)
		s.records[len(s.records)-1].Due, s.records[len(s.records)-2].Due = began+300, began+300
	}},
	{"cancelled", 0, 0, func(s *story) {
		s.stored()
		s.cancel(20, 30, history.OK)
	}},
	{"perhaps cancelled", 0, 0, func(s *story) {
		s.stored()
		s.cancel(20, 30, history.Unknown)
	}},
	{"cancelled, and published again", 0, 0, func(s *story) {
		s.publish(0, 10, "p", "x", 100, "reject", history.OK)
		s.cancel(20, 30, history.OK)
		s.publish(40, 50, "q", "x", 100, "reject", history.OK)
		s.handle(110, 120, "a.1", "q", "x", 1, history.OK)
	}},
	{"replaced", 0, 0, func(s *story) {
		s.publish(0, 10, "p", "x", 100, "replace", history.OK)
		s.publish(20, 30, "q", "x", 200, "replace", history.OK)
		s.handle(210, 220, "a.1", "q", "x", 1, history.OK)
	}},
	{"kept", 0, 0, func(s *story) {
		s.publish(0, 10, "p", "x", 100, "keep", history.OK)
		s.publish(20, 30, "q", "x", 200, "keep", history.OK)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"kept while it ran", 0, 0, func(s *story) {
		s.publish(0, 10, "p", "x", 100, "keep", history.OK)
		s.run(110, 300, "a.1", 1, history.OK)
		s.publish(120, 130, "q", "x", 100, "keep", history.OK)
		s.run(310, 320, "b.1", 1, history.OK)
	}},
	{"killed in its handler", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 0, "a.1", 1, "")
		s.fault(200, 210, history.Kill, "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"killed before its ack", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.fault(121, 125, history.Kill, "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"killed before its handler", 0, 0, func(s *story) {
		s.stored()
		s.fault(121, 125, history.Kill, "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"killed, and the last attempt used up by it", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.run(130, 140, "a.1", 2, history.Failed)
		s.run(150, 0, "a.1", 3, "")
		s.fault(160, 165, history.Kill, "a.1", "")
		s.persist(2300, 2310, "b.1", 4, history.OK)
	}},
	{"stopped for longer than the lease", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 5200, "a.1", 1, history.OK)
		s.fault(120, 5000, "freeze", "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
		s.run(5100, 5110, "a.1", 2, history.OK)
	}},
	{"begins late, after it was stopped and the event cancelled", 0, 0, func(s *story) {
		s.stored()
		s.fault(120, 5000, "freeze", "a.1", "")
		s.cancel(3000, 3010, history.OK)
		s.run(5001, 5010, "a.1", 1, history.OK)
	}},
	{"cut off", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 400, "a.1", 1, history.OK)
		s.fault(120, 5000, "cut", "a", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"the server was silent", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.fault(115, 5000, "server-stop", "", "")
		s.run(5100, 5110, "b.1", 2, history.OK)
	}},
	{"the machine was silent", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 4000, "a.1", 1, history.Failed)
		s.add(3000, history.Record{Proc: "a.1", Kind: history.Stalled, Target: "a.1", Delay: 2800})
		s.run(3100, 3110, "b.1", 2, history.OK)
	}},
	{"its ctx had ended", 0, 0, func(s *story) {
		s.stored()
		s.lapsed(110, 300, "a.1", 1, history.Failed)
		s.run(200, 210, "b.1", 1, history.OK)
	}},
	{"its ctx ended in time", 0, 0, func(s *story) {
		s.stored()
		op := s.run(110, 300, "a.1", 1, history.Failed)
		s.add(190, history.Record{Proc: "a.1", Kind: history.ContextEnded, Op: op, Topic: "t", ID: "x"})
		s.run(200, 210, "b.1", 2, history.OK)
	}},
	{"given back by a shutdown", 0, 0, func(s *story) {
		s.stored()
		s.add(100, history.Record{Proc: "a.1", Kind: history.Stopping, Delay: 50})
		s.run(110, 0, "a.1", 1, "")
		s.run(180, 190, "b.1", 1, history.OK)
		s.add(200, history.Record{Proc: "a.1", Kind: history.Stopped, Outcome: history.OK})
	}},
	{"stopped without its outcomes", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.add(130, history.Record{Proc: "a.1", Kind: history.Stopping, Delay: 50})
		s.add(200, history.Record{Proc: "a.1", Kind: history.Stopped, Outcome: history.Failed})
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"lost with the last second", 0, 1, func(s *story) {
		s.stored()
		s.fault(900, 1500, history.ServerKill, "", history.EverySec)
	}},
	{"acked in the last second", 1, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.fault(900, 1500, history.ServerKill, "", history.EverySec)
		s.run(3600, 3610, "b.1", 2, history.OK)
	}},
	{"all lost", 0, 1, func(s *story) {
		s.stored()
		s.fault(50_000, 50_500, history.ServerKill, "", history.None)
	}},
}

func TestSound(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(sound, soundClaims, soundDesks, soundTakeovers) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory()
			c.tell(s)
			got := history.Check(s.records)
			for _, v := range got.Violations {
				t.Error(v)
			}
			if got.Duplicates != c.duplicates || got.Lost != c.lost {
				t.Errorf("%d duplicates and %d lost, want %d and %d", got.Duplicates, got.Lost, c.duplicates, c.lost)
			}
		})
	}
}

// A violation comes with what is told of the id, and the faults meanwhile.
func TestEvidence(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.publish(0, 10, "p", "x", 100, "", history.OK)
	s.publish(0, 10, "other", "y", 100, "", history.OK)
	s.handle(110, 120, "a.1", "other", "y", 1, history.OK)
	s.fault(50, 60, "flush", "", "")
	s.fault(50_000, 50_060, "flush", "", "")
	got := history.Check(s.records)
	if len(got.Violations) != 1 || got.Faults["flush"] != 2 || got.Stored != 2 || got.Acked != 1 {
		t.Fatalf("%+v", got)
	}
	v := got.Violations[0]
	if want := "loss: topic t, id x: publication p was stored, and neither handled, persisted, cancelled nor dead"; v.String() != want {
		t.Errorf("got %q, want %q", v, want)
	}
	var kinds []history.Kind
	for _, r := range v.Records {
		kinds = append(kinds, r.Kind)
		if r.ID == "y" {
			t.Errorf("%+v is of another id", r)
		}
	}
	want := []history.Kind{
		history.Started, history.Started, history.Publish, history.Published, history.Fault, history.Healed,
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("records %v, want %v", kinds, want)
	}
}
