package key

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

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
	Meta     string // hash: bucket counts
	Stats    string // hash of counters
	Alarm    string // Pub/Sub channel: heads that moved earlier

	counts atomic.Pointer[counts]
}

// counts are the bucket counts a lane has had, this process's own first.
type counts struct {
	known  []int  // own first, the others ascending
	stored string // what Redis holds as far as this process knows: "" or "16,64"
	wanted string // what Redis must hold before this process puts an event there
}

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
	l.counts.Store(&counts{known: []int{buckets}, wanted: strconv.Itoa(buckets)})
	return l
}

// Held names the set of ids that session holds.
func (l *Lane) Held(session string) string { return l.Tag + ":held:" + session }

// Wake names the list that interrupts session's own blocking wait.
func (l *Lane) Wake(session string) string { return l.Tag + ":wake:" + session }

// Bucket names the i-th sorted set.
func (l *Lane) Bucket(i int) string { return l.Tag + ":bucket:" + strconv.Itoa(i) }

// Home is the index of the bucket that this process puts id into.
func (l *Lane) Home(id string) int { return Shard(id, l.counts.Load().known[0]) }

// Homes are the indexes of all buckets in which id may lie, [Lane.Home] first:
// one for each bucket count the lane has had.
func (l *Lane) Homes(id string) []int {
	known := l.counts.Load().known
	homes := make([]int, len(known))
	for i, n := range known {
		homes[i] = Shard(id, n)
	}
	return homes
}

// Buckets is how many buckets may hold events: the largest count the lane has had.
func (l *Lane) Buckets() int { return slices.Max(l.counts.Load().known) }

// Counts are the texts of the bucket counts that this process believes Redis
// holds, and that it must hold before this process publishes: "" and "16", or
// "16" and "16,64".
func (l *Lane) Counts() (stored, wanted string) {
	c := l.counts.Load()
	return c.stored, c.wanted
}

// Learn takes over the bucket counts that Redis holds.
func (l *Lane) Learn(stored string) {
	own := l.counts.Load().known[0]
	all := []int{own}
	for part := range strings.SplitSeq(stored, ",") {
		if n, err := strconv.Atoi(part); err == nil && n > 0 {
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
	l.counts.Store(&counts{known: known, stored: stored, wanted: strings.Join(texts, ",")})
}

// Topics names the set of a namespace's topics. A topic with p > 1 partitions
// stands in it as "topic/p".
func Topics(ns string) string { return ns + ":topics" }

// Shard spreads ids evenly over n places: xxhash64(id) mod n.
func Shard(id string, n int) int { return int(xxhash.Sum64String(id) % uint64(n)) }

// Partition spreads ids over n partitions, by other bits than [Shard].
func Partition(id string, n int) int { return int(xxhash.Sum64String(id) >> 32 % uint64(n)) }
