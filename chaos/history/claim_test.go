package history_test

import "github.com/dueq-io/dueq/chaos/history"

// claim is a run of x in a consumer's hand, with a visibility time of 1 s: settled
// at end (0: not at all), its caller told at told (0: nothing).
func (s *story) claim(at, end, told int64, proc string, attempt int, o, heard history.Outcome) int64 {
	r := history.Record{Proc: proc, Op: s.op(), Topic: "t", ID: "x"}
	begin := r
	begin.Kind, begin.Pub, begin.Due, begin.Attempt, begin.Max = history.Handle, "p", s.due["p"], attempt, 3
	begin.Visible = 1000
	s.add(at, begin)
	if r.Kind, r.Outcome = history.Handled, o; end > 0 {
		s.add(end, r)
	}
	if r.Kind, r.Outcome = history.Settled, heard; told > 0 {
		s.add(told, r)
	}
	return r.Op
}

// note adds a record of a run of x by a.1.
func (s *story) note(at, op int64, r history.Record) {
	r.Proc, r.Op, r.Topic, r.ID = "a.1", op, "t", "x"
	s.add(at, r)
}

var brokenClaims = []brokenStory{
	{"claimed, and left", "loss", func(s *story) {
		s.stored()
		s.claim(110, 0, 0, "a.1", 1, "", "")
	}},
	{"acked too late, and not delivered again", "loss", func(s *story) {
		s.stored()
		s.claim(110, 2000, 2010, "a.1", 1, history.OK, history.Refused)
	}},
	{"given back, and not delivered again", "loss", func(s *story) {
		s.stored()
		s.claim(110, 200, 210, "a.1", 1, history.Released, history.OK)
	}},
	{"acked after its visibility time", "lease", func(s *story) {
		s.stored()
		s.claim(110, 1500, 1510, "a.1", 1, history.OK, history.OK)
	}},
	{"acked in time, in vain", "lease", func(s *story) {
		s.stored()
		s.claim(110, 500, 510, "a.1", 1, history.OK, history.Refused)
		s.run(1700, 1710, "b.1", 2, history.OK)
	}},
	{"acked in time after it was extended, in vain", "lease", func(s *story) {
		s.stored()
		op := s.claim(110, 1500, 1510, "a.1", 1, history.OK, history.Refused)
		s.note(1000, op, history.Record{Kind: history.Extended, Visible: 1000})
		s.run(2500, 2510, "b.1", 2, history.OK)
	}},
	{"ended before its visibility time", "lease", func(s *story) {
		s.stored()
		op := s.claim(110, 0, 0, "a.1", 1, "", "")
		s.note(300, op, history.Record{Kind: history.ContextEnded})
		s.run(1700, 1710, "b.1", 2, history.OK)
	}},
	{"claimed, and delivered before its visibility time was over", "holder", func(s *story) {
		s.stored()
		s.claim(110, 0, 0, "a.1", 1, "", "")
		s.run(600, 610, "b.1", 2, history.OK)
	}},
	{"extended, and delivered all the same", "holder", func(s *story) {
		s.stored()
		op := s.claim(110, 0, 0, "a.1", 1, "", "")
		s.note(1000, op, history.Record{Kind: history.Extended, Visible: 1000})
		s.run(1600, 1610, "b.1", 2, history.OK)
	}},
	{"left, and not counted", "attempt", func(s *story) {
		s.stored()
		s.claim(110, 0, 0, "a.1", 1, "", "")
		s.run(1700, 1710, "b.1", 1, history.OK)
	}},
	{"given back by a consumer, and counted", "attempt", func(s *story) {
		s.stored()
		s.claim(110, 200, 210, "a.1", 1, history.Released, history.OK)
		s.run(300, 310, "b.1", 2, history.OK)
	}},
	{"to be retried after a pause, and delivered too early", "early", func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.Failed, history.OK)
		s.records[len(s.records)-2].Delay = 100
		s.run(150, 160, "b.1", 2, history.OK)
	}},
	{"delivered after an ack that Redis confirmed, though the process was stopped", "duplicate", func(s *story) {
		s.stored()
		s.claim(110, 200, 210, "a.1", 1, history.OK, history.OK)
		s.fault(220, 5000, "freeze", "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
}

var soundClaims = []soundStory{
	{"claimed", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 200, 210, "a.1", 1, history.Released, history.OK)
		s.claim(300, 310, 320, "b.1", 1, history.Failed, history.OK)
		s.claim(400, 410, 420, "a.1", 2, history.OK, history.OK)
	}},
	{"left to its visibility time", 0, 0, func(s *story) {
		s.stored()
		op := s.claim(110, 0, 0, "a.1", 1, "", "")
		s.note(1115, op, history.Record{Kind: history.ContextEnded})
		s.run(1120, 1130, "b.1", 2, history.OK)
	}},
	{"acked too late", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 1300, 1310, "a.1", 1, history.OK, history.Refused)
		s.run(1120, 1130, "b.1", 2, history.OK)
	}},
	{"acked too late, and its process killed", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 1120, 1130, "a.1", 1, history.OK, history.Refused)
		s.fault(1200, 1210, history.Kill, "a.1", "")
		s.run(3200, 3210, "b.1", 2, history.OK)
	}},
	{"acked, nobody knows whether in time", 1, 0, func(s *story) {
		s.stored()
		s.claim(110, 200, 800, "a.1", 1, history.OK, history.Unknown)
		s.fault(190, 3000, "cut", "a", "")
		s.run(2500, 2510, "b.1", 2, history.OK)
	}},
	{"extended, and acked", 0, 0, func(s *story) {
		s.stored()
		op := s.claim(110, 1900, 1910, "a.1", 1, history.OK, history.OK)
		s.note(1000, op, history.Record{Kind: history.Extended, Visible: 1000})
	}},
	{"claimed, and its process killed", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 0, 0, "a.1", 1, "", "")
		s.fault(200, 210, history.Kill, "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"left to its visibility time, and its process killed soon after", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 0, 0, "a.1", 1, "", "")
		s.run(1120, 1130, "a.1", 2, history.OK)
		s.fault(1200, 1210, history.Kill, "a.1", "")
	}},
	{"claimed, and given back by a shutdown", 0, 0, func(s *story) {
		s.stored()
		s.add(100, history.Record{Proc: "a.1", Kind: history.Stopping, Delay: 50})
		s.claim(110, 300, 310, "a.1", 1, history.OK, history.Refused)
		s.run(180, 190, "b.1", 1, history.OK)
		s.add(200, history.Record{Proc: "a.1", Kind: history.Stopped, Outcome: history.OK})
	}},
	{"claimed by a process that was stopped", 0, 0, func(s *story) {
		s.stored()
		s.claim(110, 900, 5010, "a.1", 1, history.OK, history.Refused)
		s.fault(120, 5000, "freeze", "a.1", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"failed for good by a process that had lost its session", 1, 0, func(s *story) {
		s.stored()
		s.claim(110, 200, 5000, "a.1", 1, history.Skip, history.Refused)
		s.persist(210, 220, "a.1", 1, history.OK)
		s.fault(205, 5000, "cut", "a", "")
		s.run(2300, 2310, "b.1", 2, history.OK)
	}},
	{"left with its last attempt", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.run(130, 140, "a.1", 2, history.Failed)
		s.claim(150, 0, 0, "a.1", 3, "", "")
		s.persist(1145, 1160, "a.1", 3, history.OK)
	}},
	{"a confirmed ack undone by the server", 1, 0, func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.OK, history.OK)
		s.fault(900, 1500, history.ServerKill, "", history.EverySec)
		s.run(3600, 3610, "b.1", 2, history.OK)
	}},
}
