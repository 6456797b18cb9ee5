package key

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// maxBuckets is more than any process may use: a greater count in Redis is some
// other hand's mistake.
const maxBuckets = 1 << 16

// Lane names the keys of one partition of a topic. All of them share one hash
// tag, so a lane lies in one Redis Cluster slot.
type Lane struct {
	Topic string
	Tag   string // {ns:topic} or {ns:topic/p}

	Pool     string // hash: id to record
	Ready    string // list of due ids
	Sessions string // zset: session by deadline in ms
	Attempts string // hash: id to attempts, handlers done and last cause; only ids that failed
	Again    string // hash: id to the due time of a publish that came while the event was held
	Dead     string // zset: id by time of death in ms
	Bell     string // list of wake tokens
	Meta     string // hash: bucket counts; whether the lane is paused
	Stats    string // hash of counters
	Alarm    string // Pub/Sub channel: heads that moved earlier, and other news

	counts atomic.Pointer[Counts]
}

// Counts are the bucket counts a lane has had, as this process knows them at one
// moment.
type Counts struct {
	Stored string // what Redis is believed to hold: "" or "16,64"
	Wanted string // what it must hold before this process puts an event there: "16" or "16,64"
	known  []int  // own first, the others ascending
}

// Homes are the indexes of all buckets in which id may lie, the one that this
// process puts it into first: one for each count.
func (c *Counts) Homes(id string) []int {
	homes := make([]int, len(c.known))
	for i, n := range c.known {
		homes[i] = Shard(id, n)
	}
	return homes
}

// Others is how many homes an id has besides the one that this process puts it
// into.
func (c *Counts) Others() int { return len(c.known) - 1 }

// Buckets is how many buckets may hold events: the largest count.
func (c *Counts) Buckets() int { return slices.Max(c.known) }

// NewLane names the keys of partition p of topic's partitions, for a process
// that spreads events over buckets sorted sets.
func NewLane(ns, topic string, p, partitions, buckets int) *Lane {
	tag := "{" + ns + ":" + topic + "}"
	if partitions > 1 {
		tag = "{" + ns + ":" + topic + "/" + strconv.Itoa(p) + "}"
	}
	l := &Lane{
		Topic: topic, Tag: tag,
		Pool: tag + ":pool", Ready: tag + ":ready", Sessions: tag + ":sessions",
		Attempts: tag + ":attempts", Again: tag + ":again", Dead: tag + ":dead",
		Bell: tag + ":bell", Meta: tag + ":meta", Stats: tag + ":stats", Alarm: tag + ":alarm",
	}
	l.counts.Store(&Counts{known: []int{buckets}, Wanted: strconv.Itoa(buckets)})
	return l
}

// Held names the set of ids that session holds.
func (l *Lane) Held(session string) string { return l.Tag + ":held:" + session }

// Wake names the list that interrupts session's own blocking wait.
func (l *Lane) Wake(session string) string { return l.Tag + ":wake:" + session }

// Bucket names the i-th sorted set.
func (l *Lane) Bucket(i int) string { return l.Tag + ":bucket:" + strconv.Itoa(i) }

// Home is the index of the bucket that this process puts id into.
func (l *Lane) Home(id string) int { return Shard(id, l.Counts().known[0]) }

// Buckets is [Counts.Buckets] as of now.
func (l *Lane) Buckets() int { return l.Counts().Buckets() }

// Counts are the bucket counts as of now. A call that needs more than one thing
// of them takes them once: [Lane.Learn] may change them at any time.
func (l *Lane) Counts() *Counts { return l.counts.Load() }

// Learn takes over the bucket counts that Redis holds.
func (l *Lane) Learn(stored string) {
	own := l.counts.Load().known[0]
	all := []int{own}
	for part := range strings.SplitSeq(stored, ",") {
		if n, err := strconv.Atoi(part); err == nil && n > 0 && n <= maxBuckets {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	known, texts := []int{own}, make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
		if n != own {
			known = append(known, n)
		}
	}
	l.counts.Store(&Counts{known: known, Stored: stored, Wanted: strings.Join(texts, ",")})
}

// Topics names the set of a namespace's topics. A topic with p > 1 partitions
// stands in it as "topic/p".
func Topics(ns string) string { return ns + ":topics" }

// Seen names the sorted set of a namespace's sessions: what describes one by
// when to forget it.
func Seen(ns string) string { return ns + ":seen" }

// Shard spreads ids evenly over n places: xxhash64(id) mod n.
func Shard(id string, n int) int { return int(xxhash.Sum64String(id) % uint64(n)) }

// ShardBytes is [Shard] of an id in bytes.
func ShardBytes(id []byte, n int) int { return int(xxhash.Sum64(id) % uint64(n)) }

// Partition spreads ids over n partitions, by other bits than [Shard].
func Partition(id string, n int) int { return int(xxhash.Sum64String(id) >> 32 % uint64(n)) }
