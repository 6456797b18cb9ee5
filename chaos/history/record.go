// Package history records what the processes of a chaos run did, and checks
// afterwards that the queue has kept its guarantees.
package history

import (
	"fmt"
	"strings"
)

// Kind says what a record tells of.
type Kind string

// The kinds of records. Those in pairs stand before and after what they tell
// of, and share an operation number: a process that dies in between leaves the
// first one.
const (
	Started  Kind = "started"  // a process; Delay is its lease
	Stopping Kind = "stopping" // ShutDown begins; Delay is how long handlers may run
	Stopped  Kind = "stopped"  // ShutDown has returned; Outcome is OK or Failed

	Publish      Kind = "publish" // Pub, Due, Policy, Replicas
	Published    Kind = "published"
	Cancel       Kind = "cancel"
	Cancelled    Kind = "cancelled"
	Reschedule   Kind = "reschedule" // Due
	Rescheduled  Kind = "rescheduled"
	Requeue      Kind = "requeue"  // Due, Name: what the ids begin with; of all dead events of Topic
	Requeued     Kind = "requeued" // Count
	Handle       Kind = "handle"   // Pub, Due, Attempt, Max; if a consumer claimed it, Visible
	Extended     Kind = "extended" // Visible, from then on; Op is that of the handle
	Handled      Kind = "handled"
	Settled      Kind = "settled" // what became of a consumer's Handled
	Persist      Kind = "persist" // Pub, Attempt, Max
	Persisted    Kind = "persisted"
	ContextEnded Kind = "context" // the ctx of a handler ended; Op is the handler's

	Pause   Kind = "pause" // Topic
	Paused  Kind = "paused"
	Resume  Kind = "resume"
	Resumed Kind = "resumed"
	List    Kind = "list" // Topic, State
	Seen    Kind = "seen" // an event of a list, in its order: Pub, State, Due: when it is due or died; Op is the list's

	Fault  Kind = "fault" // Name, Target ("": the server, and so everybody), Mode
	Healed Kind = "healed"

	Stalled Kind = "stalled" // Target ("": the server) was silent for Delay until now
	Sampled Kind = "sampled" // Heap, Goroutines
	Left    Kind = "left"    // an event lies in Redis at the end; State
	Noted   Kind = "noted"   // a line of the queue's own log, for whoever reads the history
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes. An operation without a second record has the outcome Unknown.
const (
	OK       Outcome = "ok"       // stored, done, handled
	Refused  Outcome = "refused"  // for certain it had no effect
	Unknown  Outcome = "unknown"  // it may have had an effect, now or later
	Alone    Outcome = "alone"    // stored, and not known to be on the replicas that were asked for
	Failed   Outcome = "failed"   // a handler's error or panic
	Skip     Outcome = "skip"     // a handler's error that wants no more attempts
	Released Outcome = "released" // given back by a consumer
)

// Faults by what they do to a process. Other names are faults that must not be
// felt: nothing is excused by them.
const (
	Kill       = "kill"        // the target is dead
	ServerKill = "server-kill" // the server is dead until it is healed; Mode says what it kept
	Takeover   = "takeover"    // a server has become master in place of another; Mode says why
	silent     = "silent"      // a stall, as the checker calls it
)

// Why a server takes over from another, in the Mode of a [Takeover]: a fault was
// made, or it was asked to, which loses nothing. Otherwise nobody knows.
const (
	Forced  = "forced"
	Planned = "planned"
)

// disturbing are the faults during which the target (or everybody) cannot do
// its work, or not talk to the server.
func (f *fault) disturbing() bool {
	switch f.Name {
	case ServerKill, silent, "server-stop", "pause", "freeze", "cut", "half", "lag", "narrow", "client-kill",
		"master-kill", "master-stop", "master-pause", "failover", "slot-move":
		return true
	case Takeover: // a fault that was made has a record of its own, and is felt for less long
		return f.Mode != Forced && f.Mode != Planned
	}
	return false
}

// Durability modes of a server, in the Mode of a [ServerKill].
const (
	Always   = "always"   // every acknowledged write is kept
	EverySec = "everysec" // the last second may be lost
	None     = "none"     // everything is lost
)

// Where an event lies: at the end, or when it is listed.
const (
	Dead      = "dead"
	Waiting   = "waiting"   // at the end: its time has not come
	Stuck     = "stuck"     // at the end: it is due, and nobody handles it
	Scheduled = "scheduled" // when it is listed, as the others
	Ready     = "ready"
	Leased    = "leased"
)

// Record is one line of a history.
type Record struct {
	At   int64  `json:"at"`   // ns since 1970, by the clock of the one machine
	Proc string `json:"proc"` // the process that writes it
	Kind Kind   `json:"kind"`
	Op   int64  `json:"op,omitempty"` // of the process; a pair has the same

	Topic    string `json:"topic,omitempty"`
	ID       string `json:"id,omitempty"`
	Pub      string `json:"pub,omitempty"`    // the publication, as it is named in the event's body
	Policy   string `json:"policy,omitempty"` // keep, replace or reject, if the id is the caller's
	Due      int64  `json:"due,omitempty"`    // ms since 1970
	Attempt  int    `json:"attempt,omitempty"`
	Max      int    `json:"max,omitempty"`      // attempts
	Replicas int    `json:"replicas,omitempty"` // that must have it before its publish returns nil

	Outcome Outcome `json:"outcome,omitempty"`
	Ended   bool    `json:"ended,omitempty"`   // the handler's ctx had ended when it returned
	Delay   int64   `json:"delay,omitempty"`   // ms
	Visible int64   `json:"visible,omitempty"` // ms: a consumer's visibility time
	Count   int     `json:"count,omitempty"`

	Name   string `json:"name,omitempty"`
	Target string `json:"target,omitempty"`
	Mode   string `json:"mode,omitempty"`
	State  string `json:"state,omitempty"`
	Text   string `json:"text,omitempty"`

	Heap       uint64 `json:"heap,omitempty"` // bytes
	Goroutines int    `json:"goroutines,omitempty"`
}

// String is the record without its time, as short as it can be.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %-11s", r.Proc, r.Kind)
	for _, f := range []struct {
		name  string
		value any
		shown bool
	}{
		{"", r.Name, r.Name != ""},
		{"target", r.Target, r.Target != ""},
		{"mode", r.Mode, r.Mode != ""},
		{"pub", r.Pub, r.Pub != ""},
		{"policy", r.Policy, r.Policy != ""},
		{"due", r.Due, r.Due != 0},
		{"attempt", r.Attempt, r.Attempt != 0},
		{"of", r.Max, r.Max != 0},
		{"replicas", r.Replicas, r.Replicas != 0},
		{"", r.Outcome, r.Outcome != ""},
		{"", "ctx ended", r.Ended},
		{"ms", r.Delay, r.Delay != 0},
		{"visible", r.Visible, r.Visible != 0},
		{"count", r.Count, r.Count != 0},
		{"", r.State, r.State != ""},
		{"op", r.Op, r.Op != 0},
		{"", r.Text, r.Text != ""},
	} {
		if f.shown && f.name == "" {
			fmt.Fprintf(&b, " %v", f.value)
		} else if f.shown {
			fmt.Fprintf(&b, " %s=%v", f.name, f.value)
		}
	}
	return b.String()
}
