package carrier

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/readyqueue"
)

// mover moves a lane's due events towards the handlers: it claims as many as
// it has room for, or carries them to ready when it has none.
type mover interface {
	// Move looks at ready and at the given buckets. again asks for another turn
	// at once; without it the mover kicks the lane when it has room for more.
	Move(ctx context.Context, due []int) (claimed readyqueue.Claimed, again bool, err error)
}

// blockedPause is how long a lane waits for its mover to have room, or for its
// topic to be resumed, before it looks again all the same.
const blockedPause = time.Second

// longest is how long a lane sleeps at most: what lies further off may not fit into a
// [time.Duration].
const longest = 365 * 24 * time.Hour

// Lane is one lane's place in the alarm clock: when each of its buckets' heads
// and the earliest session deadline are due, in milliseconds by the server's
// clock.
type Lane struct {
	key     *key.Lane
	carrier *Carrier
	metrics *metric.Topic
	mover   mover

	mu       sync.Mutex
	heads    []int64 // by bucket; 0: empty
	session  int64   // earliest session deadline; 0: none
	news     []news  // what came in during a turn
	stale    bool    // heads and session are to be read afresh
	running  bool    // a carrier is at work on the lane
	kicked   bool    // look again as soon as it is done
	blocked  bool    // events are due and the mover has no room
	paused   bool    // nobody gets any: blocked says that ready is full, too
	failures int
	alarms   []time.Time // that are set, each earlier than the one before it
	synced   time.Time   // when, by our clock, the server's clock showed server
	server   int64       // microseconds
}

// news says that a head, or with bucket -1 a session deadline, is at due.
type news struct {
	bucket int
	due    int64
}

// Kick makes a carrier look at the lane now.
func (l *Lane) Kick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kick()
}

// Refresh makes a carrier read all the lane's heads afresh, now.
func (l *Lane) Refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
	l.kick()
}

func (l *Lane) kick() {
	l.kicked = true
	if !l.running {
		l.arm(time.Now())
	}
}

// arm sets an alarm unless an earlier one is set.
func (l *Lane) arm(at time.Time) {
	if n := len(l.alarms); n == 0 || at.Before(l.alarms[n-1]) {
		l.alarms = append(l.alarms, at)
		_ = l.carrier.clock.Enqueue(context.Background(), l, at) // unbounded: never waits
	}
}

// alarm takes in a message of the lane's channel:
// "now-in-us bucket=due session=deadline … resumed".
func (l *Lane) alarm(message string) {
	clock, parts, _ := strings.Cut(message, " ")
	server, err := strconv.ParseInt(clock, 10, 64)
	if err != nil {
		return // not ours: the fallback finds what it may have meant
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced, l.server = time.Now(), server
	for part := range strings.FieldsSeq(parts) {
		if part == "resumed" {
			l.stale = true
			l.kick()
			continue
		}
		what, value, _ := strings.Cut(part, "=")
		n := news{bucket: -1}
		n.due, err = strconv.ParseInt(value, 10, 64)
		if err == nil && what != "session" {
			n.bucket, err = strconv.Atoi(what)
		}
		if err == nil {
			l.news = append(l.news, n)
		}
	}
	if !l.running {
		l.apply()
		l.rearm()
	}
}

// sync takes in the time of the server's clock, in microseconds.
func (l *Lane) sync(server int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced, l.server = time.Now(), server
	if !l.running {
		l.rearm()
	}
}

// apply takes over what came in.
func (l *Lane) apply() {
	for _, n := range l.news {
		switch {
		case n.bucket >= len(l.heads): // of a bucket count we do not know yet
			l.stale = true
			l.kick()
		case n.bucket < 0:
			if l.session == 0 || n.due < l.session {
				l.session = n.due
			}
		case l.heads[n.bucket] == 0 || n.due < l.heads[n.bucket]:
			l.heads[n.bucket] = n.due
		}
	}
	l.news = l.news[:0]
}

// now estimates the server's clock in milliseconds.
func (l *Lane) now() int64 {
	return (l.server + time.Since(l.synced).Microseconds()) / 1000
}

// rearm sets the alarm for the earliest head or session deadline.
func (l *Lane) rearm() {
	earliest := l.session
	for _, due := range l.heads {
		if due != 0 && (earliest == 0 || due < earliest) {
			earliest = due
		}
	}
	if earliest == 0 {
		return
	}
	earliest = min(max(earliest, 0), l.server/1000+longest.Milliseconds())
	wait := time.Duration(earliest*1000-l.server)*time.Microsecond - time.Since(l.synced)
	if wait > 10*time.Second {
		wait -= wait / 500 // clocks drift apart: wake early to look at the server's again
	}
	switch {
	case l.blocked && l.paused:
		wait = max(wait, blockedPause, l.carrier.fallback)
	case l.blocked || l.paused:
		wait = max(wait, blockedPause)
	}
	l.arm(time.Now().Add(wait))
}

// turn is what a carrier does for a lane in one go.
type turn struct {
	due      []int // the buckets that may hold due events
	sessions bool  // session deadlines may have passed
	now      int64 // about the server's time, milliseconds
}

// begin starts a turn. It reports false if one is under way, which then is
// followed by another.
func (l *Lane) begin() (t turn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarms = l.alarms[:len(l.alarms)-1] // the one that brought us here
	if l.running {
		l.kicked = true
		return turn{}, false
	}
	l.running, l.kicked, l.blocked, l.paused = true, false, false, false
	if n := l.key.Buckets(); len(l.heads) < n {
		l.heads = append(l.heads, make([]int64, n-len(l.heads))...)
		l.stale = true
	}
	t.now = l.now()
	t.sessions = l.stale || l.session != 0 && l.session <= t.now
	for i, head := range l.heads {
		if l.stale || head != 0 && head <= t.now {
			t.due = append(t.due, i)
		}
	}
	slices.SortFunc(t.due, func(a, b int) int { return cmp.Compare(l.heads[a], l.heads[b]) }) // the oldest events first
	l.stale = false
	return t, true
}

// end takes in what a turn found and sets the next alarm.
func (l *Lane) end(found readyqueue.Claimed, again bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
	if err != nil {
		l.stale = true
		l.failures++
		l.arm(time.Now().Add(retryDelay(l.failures)))
		return
	}
	l.failures = 0
	l.synced, l.server = time.Now(), found.Now
	l.paused = found.Paused
	for _, h := range found.Heads {
		if h.Empty {
			h.Due = 0
		}
		l.heads[h.Bucket] = h.Due
		l.blocked = l.blocked || h.Due != 0 && h.Due <= found.Now/1000
	}
	l.apply()
	if again || l.kicked || len(l.heads) < l.key.Buckets() {
		l.kick()
		return
	}
	l.rearm()
}

// retryDelay is the pause after the n-th failure in a row.
func retryDelay(n int) time.Duration {
	return min(50*time.Millisecond<<min(n, 10), 5*time.Second)
}
