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
	aWorker   target = iota
	aLink            // a worker's way to the server, or everybody's
	theServer        // a single one, or all
	theMemory        // of the server
	aNode            // one of several servers
)

// faultKind is one kind of fault.
type faultKind struct {
	name, does  string
	target      target
	least, most time.Duration // how long it lasts
	on          []shape       // nil: all
}

// faultKinds are all faults. Their names are those that package history knows.
var faultKinds = []faultKind{
	{"kill", "SIGKILL to a worker, and another in its place a little later", aWorker, 0, lease / 2, nil},
	{"pause", "SIGSTOP and SIGCONT to a worker, within the lease", aWorker, lease / 20, lease / 3, nil},
	{"freeze", "the same, for longer than the lease", aWorker, lease * 5 / 4, 3 * lease, nil},
	{"term", "SIGTERM to a worker, which shuts down, and another in its place", aWorker, 0, lease / 2, nil},
	{"cut", "connections broken, and refused for a time", aLink, 0, lease * 3 / 2, alone},
	{"half", "one direction of all connections goes nowhere", aLink, lease / 10, lease * 3 / 2, alone},
	{"lag", "50 to 300 ms of latency", aLink, lease / 2, 2 * lease, alone},
	{"narrow", "few kilobytes a second", aLink, lease / 2, 2 * lease, alone},
	{"client-kill", "CLIENT KILL TYPE normal or pubsub", theServer, 0, 0, nil},
	{"flush", "SCRIPT FLUSH", theServer, 0, 0, nil},
	{"server-stop", "SIGSTOP and SIGCONT to Redis", theServer, lease / 20, lease * 3 / 2, alone},
	{"server-kill", "SIGKILL to Redis, and a restart from its file", theServer, 0, lease, alone},
	{"full", "maxmemory reached, with noeviction", theMemory, lease / 2, 2 * lease, alone},
	{"policy", "maxmemory-policy allkeys-lru, without a limit", theMemory, lease / 2, 2 * lease, alone},
	{"master-kill", "SIGKILL to a master; when its replica leads, it comes back", aNode, 0, lease, replicated},
	{"master-stop", "SIGSTOP to a master; when its replica leads, SIGCONT", aNode, 0, lease, replicated},
	{"master-pause", "SIGSTOP and SIGCONT to a master, too soon for a takeover", aNode, lease / 20, lease / 4, replicated},
	{"replica-kill", "SIGKILL to a replica, which comes back empty", aNode, 0, lease, replicated},
	{"failover", "CLUSTER FAILOVER at a replica", aNode, 0, 0, []shape{cluster}},
	{"slot-move", "a lane's slot moved to another master, key by key", aNode, 0, 0, []shape{cluster}},
}

var (
	alone      = []shape{single}
	replicated = []shape{sentinel, cluster}
)

// faults are the names of all that can be made.
func (s shape) faults() faultNames {
	var names faultNames
	for _, k := range faultKinds {
		if k.on == nil || slices.Contains(k.on, s) {
			names = append(names, k.name)
		}
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

// plan says which faults are made when. It depends on its arguments only. Those of
// one of several servers, which take long to heal, have a sequence of their own.
func plan(seed uint64, names []string, workers int, duration time.Duration) []step {
	var quick, slow []string
	for _, name := range names {
		if kind, _ := findFault(name); kind.target == aNode {
			slow = append(slow, name)
		} else {
			quick = append(quick, name)
		}
	}
	return append(sequence(rand.New(rand.NewPCG(seed, 0)), quick, workers, duration, lease/8, lease*5/4),
		sequence(rand.New(rand.NewPCG(seed, 1)), slow, workers, duration, 2*lease, 6*lease)...)
}

// sequence is faults with least to most between them. All come once, in any order,
// before any comes again.
func sequence(dice *rand.Rand, names []string, workers int, duration, least, most time.Duration) []step {
	const quiet = time.Second // at first
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
