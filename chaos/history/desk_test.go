package history_test

import "github.com/dueq-io/dueq/chaos/history"

// pause pauses a topic.
func (s *story) pause(at, end int64, o history.Outcome) {
	s.pair(at, end, history.Record{Proc: "chaos", Kind: history.Pause, Topic: "t"}, history.Paused, o)
}

func (s *story) resume(at, end int64, o history.Outcome) {
	s.pair(at, end, history.Record{Proc: "chaos", Kind: history.Resume, Topic: "t"}, history.Resumed, o)
}

// requeue requeues what is dead and begins with prefix, for the time due.
func (s *story) requeue(at, end int64, prefix string, due int64, o history.Outcome) {
	s.pair(at, end, history.Record{
		Proc: "chaos", Kind: history.Requeue, Topic: "t", Name: prefix, Due: began + due,
	}, history.Requeued, o)
}

// died has x, publication p, die at 140.
func (s *story) died() {
	s.stored()
	s.run(110, 120, "a.1", 1, history.Skip)
	s.persist(130, 140, "a.1", 1, history.Failed)
}

// again is a run of x that was requeued for the time 3500.
func (s *story) again(at, end int64) {
	s.run(at, end, "b.1", 1, history.OK)
	for i := range 2 {
		s.records[len(s.records)-1-i].Due = began + 3500
	}
}

// list lists events of topic t, at a time.
func (s *story) list(at int64, state string, seen ...history.Record) {
	r := history.Record{Proc: "chaos", Op: s.op(), Kind: history.List, Topic: "t", State: state}
	s.add(at, r)
	for _, e := range seen {
		e.Proc, e.Op, e.Kind = r.Proc, r.Op, history.Seen
		s.add(at+5, e)
	}
}

// see is x on a page, as publication p.
func see(state string, due int64) history.Record {
	return history.Record{Topic: "t", ID: "x", Pub: "p", State: state, Due: began + due}
}

var brokenDesks = []brokenStory{
	{"delivered while paused", "pause", func(s *story) {
		s.stored()
		s.pause(50, 60, history.OK)
		s.run(2100, 2110, "a.1", 1, history.OK)
		s.resume(3000, 3010, history.OK)
	}},
	{"claimed while paused", "pause", func(s *story) {
		s.stored()
		s.pause(50, 60, history.OK)
		s.claim(1100, 1110, 1120, "a.1", 1, history.OK, history.OK)
		s.resume(3000, 3010, history.OK)
	}},
	{"paused again, and delivered", "pause", func(s *story) {
		s.stored()
		s.pause(20, 30, history.OK)
		s.resume(40, 45, history.OK)
		s.pause(50, 60, history.OK)
		s.run(9000, 9010, "a.1", 1, history.OK)
	}},
	{"dead after it was requeued", "requeue", func(s *story) {
		s.died()
		s.requeue(3000, 3010, "", 3500, history.OK)
		s.left(history.Dead)
	}},
	{"requeued, and delivered too early", "early", func(s *story) {
		s.died()
		s.requeue(3000, 3010, "", 3500, history.OK)
		s.again(3400, 3410)
	}},
	{"alive, and delivered for the time of a requeue", "early", func(s *story) {
		s.stored()
		s.requeue(3000, 3010, "", 3500, history.OK)
		s.again(3600, 3610)
	}},
	{"of another id than those that were requeued", "attempt", func(s *story) {
		s.died()
		s.requeue(3000, 3010, "y", 3500, history.OK)
		s.run(3600, 3610, "b.1", 1, history.OK)
	}},
	{"failed for good, requeued before, and delivered again", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Skip)
		s.requeue(122, 124, "", 50, history.OK)
		s.persist(130, 140, "a.1", 1, history.Failed)
		s.run(200, 210, "b.1", 1, history.OK)
	}},
	{"listed as what nobody published", "list", func(s *story) {
		s.list(50, history.Scheduled, see(history.Scheduled, 100))
	}},
	{"listed with another event's body", "list", func(s *story) {
		s.stored()
		s.publish(0, 10, "q", "y", 100, "", history.OK)
		e := see(history.Scheduled, 100)
		e.Pub = "q"
		s.list(50, history.Scheduled, e)
		s.handle(110, 120, "a.1", "q", "y", 1, history.OK)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"of another topic", "list", func(s *story) {
		s.stored()
		e := see(history.Scheduled, 100)
		e.Topic = "other"
		s.list(50, history.Scheduled, e)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"of another state", "list", func(s *story) {
		s.stored()
		s.list(50, history.Dead, see(history.Scheduled, 100))
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"out of order", "list", func(s *story) {
		s.stored()
		s.publish(0, 10, "q", "y", 90, "", history.OK)
		s.list(50, history.Scheduled, see(history.Scheduled, 100), history.Record{
			Topic: "t", ID: "y", Pub: "q", State: history.Scheduled, Due: began + 90,
		})
		s.handle(110, 120, "a.1", "q", "y", 1, history.OK)
		s.run(110, 120, "a.1", 1, history.OK)
	}},
	{"listed long after its ack", "list", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.list(3000, history.Leased, see(history.Leased, 0))
	}},
	{"listed after an ack that was confirmed", "list", func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.OK, history.OK)
		s.list(140, history.Leased, see(history.Leased, 0))
	}},
	{"listed after its cancel", "list", func(s *story) {
		s.stored()
		s.cancel(20, 30, history.OK)
		s.list(50, history.Scheduled, see(history.Scheduled, 100))
	}},
}

var soundDesks = []soundStory{
	{"claimed before the pause", 0, 0, func(s *story) {
		s.stored()
		s.pause(50, 60, history.OK)
		s.run(1500, 1510, "a.1", 1, history.Failed)
		s.resume(3000, 3010, history.OK)
		s.claim(3020, 3030, 3040, "a.1", 2, history.OK, history.OK)
	}},
	{"perhaps paused", 0, 0, func(s *story) {
		s.stored()
		s.pause(50, 60, history.Unknown)
		s.run(3000, 3010, "a.1", 1, history.OK)
	}},
	{"perhaps resumed", 0, 0, func(s *story) {
		s.stored()
		s.pause(20, 30, history.OK)
		s.resume(40, 45, history.Unknown)
		s.pause(50, 60, history.OK)
		s.run(9000, 9010, "a.1", 1, history.OK)
	}},
	{"paused, and the server lost it", 0, 0, func(s *story) {
		s.stored()
		s.pause(50, 60, history.OK)
		s.fault(900, 1500, history.ServerKill, "", history.EverySec)
		s.run(3600, 3610, "a.1", 1, history.OK)
	}},
	{"requeued", 0, 0, func(s *story) {
		s.died()
		s.requeue(3000, 3010, "x", 3500, history.OK)
		s.again(3500, 3510)
	}},
	{"perhaps requeued", 0, 0, func(s *story) {
		s.died()
		s.requeue(3000, 3010, "", 3500, history.Unknown)
		s.left(history.Dead)
	}},
	{"dying when it was requeued", 0, 0, func(s *story) {
		s.died()
		s.requeue(1500, 1510, "", 3500, history.OK)
		s.left(history.Dead)
	}},
	{"listed", 0, 0, func(s *story) {
		s.stored()
		s.list(50, history.Scheduled, see(history.Scheduled, 100))
		s.list(111, history.Leased, see(history.Leased, 0))
		s.run(110, 120, "a.1", 1, history.OK)
		s.list(125, history.Leased, see(history.Leased, 0))
	}},
}
