package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// lease is the workers' lease.
const lease = 2 * time.Second

// target is what a fault hits.
type target int

const (
	aWorker target = iota
	aLink          // a worker's way to the server, or everybody's
	theServer
	theMemory // of the server
)

// faultKind is one kind of fault.
type faultKind struct {
	name, does  string
	target      target
	least, most time.Duration // how long it lasts
}

// faultKinds are all faults. Their names are those that package history knows.
var faultKinds = []faultKind{
	{"kill", "SIGKILL to a worker, and another in its place a little later", aWorker, 0, lease / 2},
	{"pause", "SIGSTOP and SIGCONT to a worker, within the lease", aWorker, lease / 20, lease / 3},
	{"freeze", "the same, for longer than the lease", aWorker, lease * 5 / 4, 3 * lease},
	{"term", "SIGTERM to a worker, which shuts down, and another in its place", aWorker, 0, lease / 2},
	{"cut", "connections broken, and refused for a time", aLink, 0, lease * 3 / 2},
	{"half", "one direction of all connections goes nowhere", aLink, lease / 10, lease * 3 / 2},
	{"lag", "50 to 300 ms of latency", aLink, lease / 2, 2 * lease},
	{"narrow", "few kilobytes a second", aLink, lease / 2, 2 * lease},
	{"client-kill", "CLIENT KILL TYPE normal or pubsub", theServer, 0, 0},
	{"flush", "SCRIPT FLUSH", theServer, 0, 0},
	{"server-stop", "SIGSTOP and SIGCONT to Redis", theServer, lease / 20, lease * 3 / 2},
	{"server-kill", "SIGKILL to Redis, and a restart from its file", theServer, 0, lease},
	{"full", "maxmemory reached, with noeviction", theMemory, lease / 2, 2 * lease},
	{"policy", "maxmemory-policy allkeys-lru, without a limit", theMemory, lease / 2, 2 * lease},
}

func allFaults() faultNames {
	var names faultNames
	for _, k := range faultKinds {
		names = append(names, k.name)
	}
	return names
}

func findFault(name string) (faultKind, bool) {
	i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name })
	if i < 0 {
		return faultKind{}, false
	}
	return faultKinds[i], true
}

// step is one fault of a plan.
type step struct {
	faultKind
	at     time.Duration // since the load began
	lasts  time.Duration
	worker int    // which one; -1: everybody
	dice   uint64 // for what is particular to the fault
}

// plan says which faults are made when. It depends on its arguments only. All
// faults come once, in any order, before any comes again.
func plan(seed uint64, names []string, workers int, duration time.Duration) []step {
	const (
		quiet = time.Second // at first
		least = lease / 8   // between two faults
		most  = lease * 5 / 4
	)
	dice := rand.New(rand.NewPCG(seed, 0))
	var steps []step
	var round []string
	for at := quiet; len(names) > 0; at += least + time.Duration(dice.Int64N(int64(most-least))) {
		if len(round) == 0 {
			round = slices.Clone(names)
			dice.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		kind, _ := findFault(round[0])
		round = round[1:]
		s := step{faultKind: kind, at: at, worker: dice.IntN(workers), dice: dice.Uint64()}
		if everybody := dice.IntN(4) == 0; everybody && kind.target == aLink || kind.target > aLink {
			s.worker = -1
		}
		s.lasts = kind.least
		if kind.most > kind.least {
			s.lasts += time.Duration(dice.Int64N(int64(kind.most - kind.least)))
		}
		if s.at+s.lasts > duration {
			if s.at > duration {
				return steps
			}
			continue
		}
		steps = append(steps, s)
	}
	return steps
}
