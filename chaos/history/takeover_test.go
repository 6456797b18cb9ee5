package history_test

import "github.com/dueq-io/dueq/chaos/history"

// confirmed publishes an event x, as publication p, at 0 for the time 100: a
// replica has it.
func (s *story) confirmed(at, end int64, o history.Outcome) {
	s.publish(at, end, "p", "x", at+100, "", o)
	for i := range s.records {
		if s.records[i].Kind == history.Publish {
			s.records[i].Replicas = 1
		}
	}
}

// takeover has a server take over from a master: all was well until from, and is
// again at to.
func (s *story) takeover(from, to int64, mode string) {
	s.fault(from, to, history.Takeover, "", mode)
}

var brokenTakeovers = []brokenStory{
	{"confirmed by a replica, and lost when it took over", "loss", func(s *story) {
		s.confirmed(0, 10, history.OK)
		s.takeover(20, 3000, history.Forced)
	}},
	{"confirmed by a replica while the old master still took writes, and lost", "loss", func(s *story) {
		s.takeover(0, 3000, "")
		s.confirmed(1000, 1010, history.OK)
	}},
	{"confirmed by a replica, and lost by a server that keeps everything", "loss", func(s *story) {
		s.confirmed(0, 10, history.OK)
		s.fault(20, 500, history.ServerKill, "", history.Always)
	}},
	{"lost long before a takeover", "loss", func(s *story) {
		s.stored()
		s.takeover(5000, 8000, history.Forced)
	}},
	{"lost after a takeover", "loss", func(s *story) {
		s.takeover(0, 3000, history.Forced)
		s.publish(3100, 3110, "p", "x", 3200, "", history.OK)
	}},
	{"lost in a planned failover", "loss", func(s *story) {
		s.stored()
		s.fault(15, 1000, "failover", "", "")
		s.takeover(20, 900, history.Planned)
	}},
	{"lost when a slot moved", "loss", func(s *story) {
		s.stored()
		s.fault(5, 1000, "slot-move", "", "")
	}},
	{"lost with a replica", "loss", func(s *story) {
		s.stored()
		s.fault(5, 1000, "replica-kill", "", "")
	}},
	{"acked long before a takeover, and delivered after it", "duplicate", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.OK)
		s.takeover(9000, 12_000, history.Forced)
		s.run(10_000, 10_010, "b.1", 1, history.OK)
	}},
	{"an ack that Redis confirmed long before a takeover", "duplicate", func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.OK, history.OK)
		s.takeover(9000, 12_000, history.Forced)
		s.run(10_000, 10_010, "b.1", 1, history.OK)
	}},
	{"acked before a planned failover", "duplicate", func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.OK, history.OK)
		s.fault(140, 1500, "failover", "", "")
		s.takeover(140, 500, history.Planned)
		s.run(5000, 5010, "b.1", 1, history.OK)
	}},
	{"cancelled long before a takeover", "cancel", func(s *story) {
		s.publish(0, 10, "p", "x", 10_000, "", history.OK)
		s.cancel(20, 30, history.OK)
		s.takeover(20_000, 23_000, history.Forced)
		s.run(11_000, 11_010, "a.1", 1, history.OK)
	}},
	{"two holders long after a takeover", "holder", func(s *story) {
		s.takeover(0, 3000, history.Forced)
		s.publish(9000, 9010, "p", "x", 9100, "", history.OK)
		s.run(9200, 9800, "a.1", 1, history.Failed)
		s.run(9300, 9310, "b.1", 1, history.OK)
	}},
	{"early after a takeover", "early", func(s *story) {
		s.takeover(0, 3000, history.Forced)
		s.publish(10, 20, "p", "x", 2000, "", history.OK)
		s.run(1900, 1910, "a.1", 1, history.OK)
	}},
	{"an attempt more though a replica was killed", "attempt", func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.fault(130, 1000, "replica-kill", "", "")
		s.run(300, 310, "b.1", 3, history.OK)
	}},
}

var soundTakeovers = []soundStory{
	{"lost by a takeover", 0, 1, func(s *story) {
		s.stored()
		s.takeover(1000, 3000, history.Forced)
	}},
	{"lost by an old master that still took writes", 0, 1, func(s *story) {
		s.takeover(0, 3000, "")
		s.publish(1000, 1010, "p", "x", 1100, "", history.OK)
	}},
	{"stored without the replica that was asked for, and lost", 0, 0, func(s *story) {
		s.confirmed(0, 1010, history.Alone)
		s.takeover(20, 3000, history.Forced)
	}},
	{"stored without the replica that was asked for, and delivered", 0, 0, func(s *story) {
		s.confirmed(0, 1010, history.Alone)
		s.run(150, 160, "a.1", 1, history.OK)
	}},
	{"confirmed by a replica, and lost with the server's file", 0, 1, func(s *story) {
		s.confirmed(0, 10, history.OK)
		s.fault(900, 1500, history.ServerKill, "", history.EverySec)
	}},
	{"an ack undone by a takeover", 1, 0, func(s *story) {
		s.stored()
		s.claim(110, 120, 130, "a.1", 1, history.OK, history.OK)
		s.takeover(1000, 3000, history.Forced)
		s.run(2000, 2010, "b.1", 1, history.OK)
	}},
	{"a cancel undone by a takeover", 0, 0, func(s *story) {
		s.publish(0, 10, "p", "x", 2000, "", history.OK)
		s.cancel(20, 30, history.OK)
		s.takeover(100, 3000, history.Forced)
		s.run(2500, 2510, "a.1", 1, history.OK)
	}},
	{"a claim undone by a takeover while its handler runs", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 2900, "a.1", 1, history.OK)
		s.takeover(1000, 3000, history.Forced)
		s.run(2500, 2600, "b.1", 1, history.OK)
	}},
	{"a failure undone by a takeover", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 120, "a.1", 1, history.Failed)
		s.takeover(1000, 3000, history.Forced)
		s.run(2500, 2600, "b.1", 1, history.OK)
	}},
	{"a takeover that nobody made, and a session lost", 0, 0, func(s *story) {
		s.stored()
		s.run(110, 5000, "a.1", 1, history.Failed)
		s.takeover(1000, 4000, "")
		s.run(3900, 3910, "b.1", 2, history.OK)
	}},
}
