package dueq_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/readyqueue"
)

// TestModel compares a lane with a plain model of it, move by move: where every
// id lies, what its record and its attempts say, who holds it.
func TestModel(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		runs := 0
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			m := newModel(env, fmt.Sprint(env.Namespace, "-", runs))
			defer m.clear()
			rt.Repeat(map[string]func(*rapid.T){
				"publish":    m.publish,
				"cancel":     m.cancel,
				"reschedule": m.reschedule,
				"claim":      m.claim,
				"settle":     m.settle,
				"extend":     m.extend,
				"crash":      m.crash,
				"pass":       m.pass,
				"trim":       m.trim,
				"purge":      m.purge,
				"pause":      m.pause,
				"requeue":    m.requeue,
				"list":       m.list,
				"":           m.compare,
			})
		})
	})
}

const modelLease = 50 * time.Millisecond

// place is where an event of the model lies.
type place string

const (
	inBucket place = "bucket"
	inReady  place = "ready"
	isDead   place = "dead"
	isHeld   place = "held " // with the session's name
)

// modelEvent is what a lane should know of an id.
type modelEvent struct {
	at   int64 // effect time in its record
	body string

	place  place
	bucket int   // if it lies in one
	due    int64 // there, or when it died

	attempts *readyqueue.Attempts
	mark     string // keep or replace: published again while it was not free
	markDue  int64
	markHome int // by the publisher's count
}

// model is a lane as it should be.
type model struct {
	rdb    redis.UniversalClient
	mini   func(time.Time)        // sets the server's clock; nil: it runs by itself
	lanes  []*key.Lane            // of two processes with different bucket counts
	low    int64                  // the server's clock, in ms, before the last move
	high   int64                  // and after it
	ids    int                    // made so far
	all    map[string]*modelEvent // by id
	ready  []string               // in order
	paused bool
	ends   map[string]int64           // deadline by session
	holds  map[string]map[string]bool // by session: the ids that it believes it holds
}

func newModel(env *redistest.Env, namespace string) *model {
	m := &model{
		rdb:   env.Client,
		lanes: []*key.Lane{key.NewLane(namespace, "a", 0, 1, 2), key.NewLane(namespace, "a", 0, 1, 3)},
		all:   make(map[string]*modelEvent), ends: make(map[string]int64), holds: make(map[string]map[string]bool),
	}
	if env.Mini != nil {
		m.mini = env.Mini.SetTime
		m.set(time.Now().UnixMilli())
	} else {
		m.low = time.Now().UnixMilli()
		m.look()
	}
	for i := range 3 {
		m.holds[fmt.Sprint("s", i)] = make(map[string]bool)
	}
	return m
}

func (m *model) set(now int64) {
	m.low, m.high = now, now
	m.mini(time.UnixMilli(now))
}

// look takes note of a clock that runs by itself.
func (m *model) look() {
	if m.mini == nil {
		m.high = m.rdb.Time(context.Background()).Val().UnixMilli()
	}
}

// begin stands before each move.
func (m *model) begin() {
	m.look()
	m.low = m.high
}

func (m *model) clear() {
	keys := m.rdb.Keys(context.Background(), m.lanes[0].Tag+":*").Val()
	if len(keys) > 0 {
		m.rdb.Del(context.Background(), keys...)
	}
}

func (m *model) lane(t *rapid.T) *key.Lane { return m.lanes[rapid.IntRange(0, 1).Draw(t, "lane")] }

// session is a session and its process's lane.
func (m *model) session(t *rapid.T) (string, *key.Lane) {
	i := rapid.IntRange(0, 2).Draw(t, "session")
	return fmt.Sprint("s", i), m.lanes[i%len(m.lanes)]
}

// delay is a time from now, none of it near now where the clock runs by itself.
func (m *model) delay(t *rapid.T, low, high int) int64 {
	if m.mini != nil {
		return int64(rapid.IntRange(low, high).Draw(t, "delay"))
	}
	return rapid.SampledFrom([]int64{int64(min(low, 0)) * 1000, 3_600_000}).Draw(t, "delay")
}

// id is an id that may exist: mostly a caller's own.
func (m *model) id(t *rapid.T) string {
	known := append([]string{"k0", "k1", "k2", "k3"}, slices.Sorted(maps.Keys(m.all))...)
	return rapid.SampledFrom(known).Draw(t, "id")
}

func (m *model) forget(id string) {
	delete(m.all, id)
	m.unready(id)
}

func (m *model) unready(id string) {
	m.ready = slices.DeleteFunc(m.ready, func(r string) bool { return r == id })
}

func (m *model) schedule(id string, due int64, home int) {
	e := m.all[id]
	m.unready(id)
	e.place, e.due, e.bucket = inBucket, due, home
}

func (m *model) publish(t *rapid.T) {
	l := m.lane(t)
	m.begin()
	batch := bucket.Batch{Lane: l}
	bodies := map[*bucket.Event]string{}
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e := &bucket.Event{Due: m.low + m.delay(t, -20, 100)}
		if e.Keyed = rapid.IntRange(0, 3).Draw(t, "keyed") > 0; e.Keyed {
			e.ID = rapid.SampledFrom([]string{"k0", "k1", "k2", "k3"}).Draw(t, "key")
			e.Policy = rapid.SampledFrom([]bucket.Policy{bucket.Reject, bucket.Keep, bucket.Replace}).Draw(t, "policy")
		} else {
			m.ids++
			e.ID = fmt.Sprint("f", m.ids)
		}
		bodies[e] = rapid.SampledFrom([]string{"", "x", "a\nb\x00"}).Draw(t, "body")
		record := pool.Record{EffectTime: e.Due, Body: []byte(bodies[e])}
		var err error
		if e.Record, err = record.Encode(); err != nil {
			t.Fatal(err)
		}
		batch.Events = append(batch.Events, e)
	}
	bucket.Publish(t.Context(), m.rdb, []bucket.Batch{batch}, 0)
	m.look()
	last := map[string]bucket.Policy{}
	for _, keyed := range []bool{false, true} { // as the script does
		for _, e := range batch.Events {
			if e.Keyed != keyed {
				continue
			}
			policy, repeated := last[e.ID]
			last[e.ID] = e.Policy
			if repeated && policy == bucket.Keep && e.Policy == bucket.Keep {
				continue // the first stands for both
			}
			var want error
			if !m.store(e, bodies[e], l.Home(e.ID)) {
				want = bucket.ErrDuplicateID
			}
			if !errors.Is(e.Err, want) {
				t.Fatalf("publish %s: %v, want %v", e.ID, e.Err, want)
			}
		}
	}
}

// store does what publishing one event should.
func (m *model) store(e *bucket.Event, body string, home int) (ok bool) {
	old := m.all[e.ID]
	fresh := &modelEvent{at: e.Due, body: body}
	switch {
	case old == nil:
	case e.Policy == bucket.Reject:
		return false
	case e.Policy == bucket.Keep && old.place != isDead:
		if old.place != inBucket && old.mark == "" {
			old.mark, old.markDue, old.markHome = "keep", e.Due, home
		}
		if old.attempts != nil {
			old.attempts.Done = 0
		}
		return true
	case strings.HasPrefix(string(old.place), string(isHeld)):
		old.at, old.body = e.Due, body
		old.mark, old.markDue, old.markHome = "replace", e.Due, home
		return true
	}
	m.unready(e.ID)
	m.all[e.ID] = fresh
	// An id of our own that this process's clock takes to be ahead goes to its bucket unseen.
	if e.Due <= m.low && (e.Keyed || !m.lies(home, e.ID)) {
		fresh.place = inReady
		m.ready = append(m.ready, e.ID)
	} else {
		m.schedule(e.ID, e.Due, home)
	}
	return true
}

func (m *model) lies(home int, id string) bool {
	return m.rdb.ZScore(context.Background(), m.lanes[0].Bucket(home), id).Err() == nil
}

func (m *model) cancel(t *rapid.T) {
	l, id := m.lane(t), m.id(t)
	m.begin()
	err := bucket.Cancel(t.Context(), m.rdb, l, id)
	if want := m.free(id); !errors.Is(err, want) {
		t.Fatalf("cancel %s: %v, want %v", id, err, want)
	}
	if err == nil {
		m.forget(id)
	}
}

func (m *model) reschedule(t *rapid.T) {
	l, id := m.lane(t), m.id(t)
	m.begin()
	due := m.low + m.delay(t, -20, 100)
	move, want := bucket.Reschedule, m.free(id)
	if rapid.Bool().Draw(t, "only if dead") {
		move = bucket.RequeueOne
		if e := m.all[id]; e != nil && e.place != isDead {
			want = bucket.ErrNotDead
		}
	}
	err := move(t.Context(), m.rdb, l, id, due)
	if !errors.Is(err, want) {
		t.Fatalf("reschedule %s: %v, want %v", id, err, want)
	}
	if err != nil {
		return
	}
	e := m.all[id]
	if e.place == isDead {
		e.attempts = nil
	}
	e.at, e.mark = due, ""
	m.schedule(id, due, l.Home(id))
}

// free says why an id cannot be moved.
func (m *model) free(id string) error {
	switch e := m.all[id]; {
	case e == nil:
		return bucket.ErrNotFound
	case strings.HasPrefix(string(e.place), string(isHeld)):
		return bucket.ErrLeased
	}
	return nil
}

// due are the due events of a bucket, the earliest first.
func (m *model) due(i int) (ids []string) {
	for id, e := range m.all {
		if e.place == inBucket && e.bucket == i && e.due <= m.low {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(m.all[a].due, m.all[b].due), cmp.Compare(a, b)) })
	return ids
}

func (m *model) claim(t *rapid.T) {
	session, l := m.session(t)
	holds := len(m.holds[session]) > 0
	c := readyqueue.Claim{
		Session: session, Lease: modelLease, Holds: holds, Extend: !holds || rapid.Bool().Draw(t, "extend"), Check: true,
		Limit: rapid.IntRange(0, 4).Draw(t, "limit"), HighWater: 3,
		Due: rapid.Permutation([]int{0, 1, 2}).Draw(t, "buckets")[:rapid.IntRange(0, 3).Draw(t, "number")],
	}
	if m.mini == nil {
		c.Lease = time.Hour
	}
	m.begin()
	found, err := c.Run(t.Context(), m.rdb, l)
	m.look()
	if _, known := m.ends[session]; holds && !known {
		if !errors.Is(err, readyqueue.ErrLost) {
			t.Fatalf("claim of a lost session: %v", err)
		}
		clear(m.holds[session])
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if found.Paused != m.paused {
		t.Fatalf("the claim found the lane paused: %t, want %t", found.Paused, m.paused)
	}
	var want []string
	if c.Limit == 0 || m.paused {
		for _, i := range c.Due {
			for _, id := range m.due(i) {
				if len(m.ready) < c.HighWater {
					m.all[id].place = inReady
					m.ready = append(m.ready, id)
				}
			}
		}
	} else {
		want = slices.Clone(m.ready[:min(c.Limit, len(m.ready))])
		for _, i := range c.Due {
			due := m.due(i)
			want = append(want, due[:min(c.Limit-len(want), len(due))]...)
		}
	}
	m.take(t, c, found, want)
}

// take compares what was claimed with what should have been.
func (m *model) take(t *rapid.T, c readyqueue.Claim, found readyqueue.Claimed, want []string) {
	var got []string
	for _, lease := range found.Leases {
		got = append(got, lease.ID)
		e := m.all[lease.ID]
		if e == nil {
			t.Fatalf("claimed %s, which does not exist", lease.ID)
		}
		record, err := pool.Decode(lease.Record)
		if err != nil || record.EffectTime != e.at || string(record.Body) != e.body {
			t.Fatalf("claimed %s as %+v, %v, want at %d, body %q", lease.ID, record, err, e.at, e.body)
		}
		var attempts readyqueue.Attempts
		if e.attempts != nil {
			attempts = *e.attempts
		}
		if lease.Attempts != attempts {
			t.Fatalf("claimed %s with %+v, want %+v", lease.ID, lease.Attempts, attempts)
		}
		m.unready(lease.ID)
		e.place, e.mark = isHeld+place(c.Session), ""
		m.holds[c.Session][lease.ID] = true
	}
	if !slices.Equal(got, want) {
		t.Fatalf("claimed %v, want %v", got, want)
	}
	if len(want) > 0 && c.Extend {
		m.ends[c.Session] = m.low + c.Lease.Milliseconds()
	}
	for _, h := range found.Heads {
		head := int64(0)
		for _, e := range m.all {
			if e.place == inBucket && e.bucket == h.Bucket && (head == 0 || e.due < head) {
				head = e.due
			}
		}
		if h.Empty != (head == 0) || h.Due != head {
			t.Fatalf("head of bucket %d is %+v, want %d", h.Bucket, h, head)
		}
	}
}

func (m *model) settle(t *rapid.T) {
	session, l := m.session(t)
	ids := slices.Sorted(maps.Keys(m.holds[session]))
	if rapid.IntRange(0, 4).Draw(t, "strange") == 0 {
		if id := m.id(t); !slices.Contains(ids, id) {
			ids = append(ids, id) // not its own
		}
	}
	if len(ids) == 0 {
		t.Skip("holds nothing")
	}
	ids = rapid.Permutation(ids).Draw(t, "ids")
	ids = ids[:rapid.IntRange(1, len(ids)).Draw(t, "number")]
	batch := readyqueue.Settlements{Lane: l, Session: session}
	m.begin()
	for _, id := range ids {
		s := &readyqueue.Settlement{ID: id, Outcome: readyqueue.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))}
		if s.Outcome == readyqueue.Retry {
			s.Delay = time.Duration(m.delay(t, 0, 100)) * time.Millisecond
		}
		if e := m.all[id]; e != nil && e.attempts != nil {
			s.Attempts = *e.attempts
		}
		s.Attempts.Count++
		s.Attempts.Done = uint64(rapid.IntRange(0, 3).Draw(t, "done"))
		s.Attempts.Cause = rapid.SampledFrom([]string{"", "broken", "a|b\nc"}).Draw(t, "cause")
		batch.Items = append(batch.Items, s)
	}
	readyqueue.Settle(t.Context(), m.rdb, []readyqueue.Settlements{batch})
	m.look()
	for _, s := range batch.Items {
		e := m.all[s.ID]
		var want error
		if e == nil || e.place != isHeld+place(session) {
			want = readyqueue.ErrLost
		}
		if !errors.Is(s.Err, want) {
			t.Fatalf("%v %s: %v, want %v", s.Outcome, s.ID, s.Err, want)
		}
		if want == nil {
			m.end(s, l.Home(s.ID))
		}
		delete(m.holds[session], s.ID)
	}
}

// end does what ending one lease should.
func (m *model) end(s *readyqueue.Settlement, home int) {
	e := m.all[s.ID]
	if e.mark == "replace" || e.mark != "" && (s.Outcome == readyqueue.Ack || s.Outcome == readyqueue.Bury) {
		if e.mark == "keep" {
			e.at = e.markDue
		}
		due := e.markDue
		e.mark, e.attempts = "", nil
		m.schedule(s.ID, due, home)
		return
	}
	attempts := s.Attempts
	if e.mark != "" {
		attempts.Done = 0
	}
	e.mark = ""
	switch s.Outcome {
	case readyqueue.Ack:
		m.forget(s.ID)
	case readyqueue.Release:
		e.place = inReady
		m.ready = append([]string{s.ID}, m.ready...)
	case readyqueue.Retry:
		e.attempts = &attempts
		due := m.low
		if s.Delay > 0 { // from the beginning of the present millisecond
			due += s.Delay.Milliseconds() + 1
		}
		m.schedule(s.ID, due, home)
	case readyqueue.Bury:
		e.attempts = &attempts
		e.place, e.due = isDead, m.low
	}
}

func (m *model) extend(t *rapid.T) {
	name, l := m.session(t)
	s := &readyqueue.Session{Lane: l, Name: name, Lease: modelLease}
	if m.mini == nil {
		s.Lease = time.Hour
	}
	m.begin()
	readyqueue.Extend(t.Context(), m.rdb, []*readyqueue.Session{s})
	m.look()
	if _, known := m.ends[s.Name]; !known {
		if !errors.Is(s.Err, readyqueue.ErrLost) {
			t.Fatalf("extend a lost session: %v", s.Err)
		}
		clear(m.holds[s.Name])
		return
	}
	held := 0
	for _, e := range m.all {
		if e.place == isHeld+place(s.Name) {
			held++
		}
	}
	if s.Err != nil || s.Held != held {
		t.Fatalf("extend %s: %d held, %v, want %d", s.Name, s.Held, s.Err, held)
	}
	m.ends[s.Name] = m.low + s.Lease.Milliseconds()
}

// crash lets a session's deadline pass at once.
func (m *model) crash(t *rapid.T) {
	session, l := m.session(t)
	if _, known := m.ends[session]; !known {
		t.Skip("no such session")
	}
	m.ends[session] = 1
	if err := m.rdb.ZAdd(t.Context(), l.Sessions, redis.Z{Score: 1, Member: session}).Err(); err != nil {
		t.Fatal(err)
	}
	m.expire(t)
}

// pass lets time pass, and leases with it.
func (m *model) pass(t *rapid.T) {
	if m.mini != nil {
		m.set(m.low + int64(rapid.IntRange(0, 80).Draw(t, "pass")))
	}
	if rapid.Bool().Draw(t, "expire") {
		m.expire(t)
	}
}

func (m *model) expire(t *rapid.T) {
	l := m.lane(t)
	m.begin()
	next, err := readyqueue.Expire(t.Context(), m.rdb, l, m.low)
	m.look()
	if err != nil {
		t.Fatal(err)
	}
	earliest := int64(0)
	for session, end := range m.ends {
		if end > m.low {
			if earliest == 0 || end < earliest {
				earliest = end
			}
			continue
		}
		delete(m.ends, session)
		for id, e := range m.all {
			if e.place == isHeld+place(session) {
				m.lose(id, e)
			}
		}
	}
	if m.mini != nil && next != earliest || (next == 0) != (earliest == 0) {
		t.Fatalf("expire returned %d, want %d", next, earliest)
	}
}

// lose does what losing one lease should.
func (m *model) lose(id string, e *modelEvent) {
	if e.mark == "replace" {
		e.mark, e.attempts = "", nil
		m.schedule(id, e.markDue, e.markHome)
		return
	}
	if e.attempts == nil {
		e.attempts = &readyqueue.Attempts{}
	}
	e.attempts.Count++
	e.attempts.Cause = readyqueue.LostCause
	e.mark = ""
	e.place = inReady
	m.ready = append([]string{id}, m.ready...)
}

// modelState is a lane as it is.
type modelState struct {
	places   map[string][]string // by id
	due      map[string]int64    // in its bucket, or among the dead
	bucket   map[string]int
	records  map[string]string
	attempts map[string]string
	marks    map[string]string
	ready    []string
	sessions map[string]int64
}

const dumpLane = `
local out = {}
for _, k in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do
	local kind = redis.call('TYPE', k).ok
	local name = string.sub(k, #ARGV[1] + 2)
	if kind == 'hash' then out[#out + 1] = { name, redis.call('HGETALL', k) }
	elseif kind == 'zset' then out[#out + 1] = { name, redis.call('ZRANGE', k, 0, -1, 'WITHSCORES') }
	elseif kind == 'list' then out[#out + 1] = { name, redis.call('LRANGE', k, 0, -1) }
	elseif kind == 'set' then out[#out + 1] = { name, redis.call('SMEMBERS', k) } end
end
return out`

// read reads the whole lane in one step.
func (m *model) read(t *rapid.T) modelState {
	reply, err := m.rdb.Eval(t.Context(), dumpLane, []string{m.lanes[0].Pool}, m.lanes[0].Tag).Slice()
	if err != nil {
		t.Fatal(err)
	}
	s := modelState{
		places: make(map[string][]string), due: make(map[string]int64), bucket: make(map[string]int),
		sessions: make(map[string]int64),
	}
	for _, entry := range reply {
		pair := entry.([]any)
		name := pair[0].(string)
		var values []string
		for _, v := range pair[1].([]any) {
			values = append(values, v.(string))
		}
		s.add(t, name, values)
	}
	return s
}

func (s *modelState) add(t *rapid.T, name string, values []string) {
	pairs := func() map[string]string {
		m := make(map[string]string)
		for p := range slices.Chunk(values, 2) {
			m[p[0]] = p[1]
		}
		return m
	}
	at := func(where string, ids []string) {
		for _, id := range ids {
			s.places[id] = append(s.places[id], where)
		}
	}
	number := func(text string) int64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int64(f)
	}
	what, which, _ := strings.Cut(name, ":")
	switch what {
	case "pool":
		s.records = pairs()
	case "attempts":
		s.attempts = pairs()
	case "again":
		s.marks = pairs()
	case "ready":
		s.ready = values
		at("ready", values)
	case "held":
		at("held "+which, values)
	case "bucket", "dead":
		for id, score := range pairs() {
			s.due[id] = number(score)
			if what == "bucket" {
				s.bucket[id], _ = strconv.Atoi(which)
			}
			at(what, []string{id})
		}
	case "sessions":
		for session, end := range pairs() {
			s.sessions[session] = number(end)
		}
	case "bell", "meta", "stats":
	default:
		t.Fatalf("unknown key %s", name)
	}
}

// near reports whether a time of the model, reckoned from the clock before the
// move, is the one in Redis, reckoned during it.
func (m *model) near(want, got int64) bool { return got >= want && got <= want+m.high-m.low }

// compare fails unless the lane is as it should be.
func (m *model) compare(t *rapid.T) {
	s := m.read(t)
	for id := range s.places {
		if m.all[id] == nil {
			t.Fatalf("%s lies %v, and should not exist", id, s.places[id])
		}
	}
	for _, ids := range []map[string]string{s.records, s.attempts, s.marks} {
		for id := range ids {
			if m.all[id] == nil {
				t.Fatalf("something is left of %s", id)
			}
		}
	}
	for id, e := range m.all {
		m.compareEvent(t, s, id, e)
	}
	if !slices.Equal(slices.Sorted(slices.Values(s.ready)), slices.Sorted(slices.Values(m.ready))) {
		t.Fatalf("ready is %v, want %v", s.ready, m.ready)
	}
	m.ready = s.ready // in whatever order one move has put them
	if len(s.sessions) != len(m.ends) {
		t.Fatalf("sessions %v, want %v", s.sessions, m.ends)
	}
	for session, end := range m.ends {
		if !m.near(end, s.sessions[session]) {
			t.Fatalf("session %s ends at %d, want %d", session, s.sessions[session], end)
		}
		m.ends[session] = s.sessions[session]
	}
	m.low = m.high
}

func (m *model) compareEvent(t *rapid.T, s modelState, id string, e *modelEvent) {
	if places := s.places[id]; len(places) != 1 || places[0] != string(e.place) {
		t.Fatalf("%s lies %v, want %s", id, places, e.place)
	}
	if e.place == inBucket || e.place == isDead {
		if !m.near(e.due, s.due[id]) || e.place == inBucket && s.bucket[id] != e.bucket {
			t.Fatalf("%s lies in bucket %d at %d, want %+v (now %d to %d)", id, s.bucket[id], s.due[id], e, m.low, m.high)
		}
		e.due = s.due[id]
	}
	record, err := pool.Decode(s.records[id])
	if err != nil || record.EffectTime != e.at || string(record.Body) != e.body {
		t.Fatalf("%s has record %+v, %v, want at %d, body %q", id, record, err, e.at, e.body)
	}
	entry, has := s.attempts[id]
	if has != (e.attempts != nil) || has && readyqueue.ParseAttempts(entry) != *e.attempts {
		t.Fatalf("%s has attempts %q, want %+v", id, entry, e.attempts)
	}
	want := ""
	if e.mark != "" {
		want = fmt.Sprintf("%s:%d:%d", e.mark, e.markDue, e.markHome)
	}
	if s.marks[id] != want {
		t.Fatalf("%s has mark %q, want %q", id, s.marks[id], want)
	}
}
