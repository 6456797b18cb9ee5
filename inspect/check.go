package inspect

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// Kind says what is wrong with an id.
type Kind string

const (
	// NoPlace is a body in the pool that lies nowhere. It is mended by putting
	// it among the dead.
	NoPlace Kind = "no_place"
	// NoBody is an id that lies somewhere and has no body. It is forgotten.
	NoBody Kind = "no_body"
	// TwoPlaces is an id that lies in more than one place. It stays where a live
	// session holds it, else in ready, else in a bucket, else among the dead.
	TwoPlaces Kind = "two_places"
	// WrongBucket is an id in a bucket in which no registered bucket count would
	// look for it. It goes to one where it belongs, with the same due time.
	WrongBucket Kind = "wrong_bucket"
	// NoSession is an id in a held set of no session. The set is given a session
	// that is past its deadline.
	NoSession Kind = "no_session"
	// Leftover is what is kept of attempts and marks of an id that has no body. It
	// is forgotten.
	Leftover Kind = "leftover"
)

// Finding is an id with which something is wrong.
type Finding struct {
	Kind Kind
	ID   string
	Keys []string // in which it lies
}

// PlacelessCause is noted with the attempts of a body that lay nowhere.
const PlacelessCause = "found without a place by check"

// What one check script may do.
const (
	maxJudged = 50      // ids
	maxLooks  = 5_000   // lookups of ids in buckets and held sets
	maxPassed = 100_000 // elements of ready passed in search of ids
)

//go:embed check.lua
var checkSource string

//go:embed adopt.lua
var adoptSource string

var (
	checkScript = script.New(checkSource)
	adoptScript = script.New(adoptSource)
)

// Check looks at all ids of the lanes, which are one topic's and the caller's
// alone, in small steps, and calls found for each with which something is wrong.
// With mend it mends that, too. The topic may be in use: an id is judged, and
// mended, in one atomic step, by all the places in which it lies then.
func Check(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane, mend bool, found func(Finding)) error {
	keys, err := laneKeys(ctx, rdb, lanes)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		c := &checker{
			rdb: rdb, lane: l, mend: mend, found: found,
			index:  make(map[string]int),
			moving: make(map[string]bool), wrong: make(map[string]bool), orphaned: make(map[string]bool),
		}
		if err := c.prepare(ctx, keys[l.Tag]); err != nil {
			return err
		}
		for _, walk := range []func(context.Context) error{
			c.walkReady, c.walkHeld, c.walkPool, c.walkBuckets, c.walkDead, c.walkEntries, c.judge, c.adopt,
		} {
			if err := walk(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// checker checks one lane. Its walks only gather suspects: what they read is of
// different moments.
type checker struct {
	rdb   redis.UniversalClient
	lane  *key.Lane
	mend  bool
	found func(Finding)

	stored   string         // registered bucket counts, as Redis holds them
	counts   []int          // the same, ascending
	buckets  []string       // keys in which ids may lie: those of the counts, and all others that there are
	index    map[string]int // of these keys, in the script's KEYS
	sessions []string       // that may hold ids
	alone    []string       // those of them that were no sessions when the check began

	ready    int             // how many ids were in ready
	moving   map[string]bool // ids that were in ready or held
	suspects []string        // ids to be judged
	wrong    map[string]bool // ids that were found wrong
	orphaned map[string]bool // held sets of no session
}

// prepare reads the bucket counts and sessions. names are the keys of buckets and
// held sets that were found in Redis, without the lane's tag.
func (c *checker) prepare(ctx context.Context, names []string) error {
	stored, err := c.rdb.HGet(ctx, c.lane.Meta, "buckets").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return c.failed("read bucket counts", err)
	}
	if c.sessions, err = c.rdb.ZRange(ctx, c.lane.Sessions, 0, -1).Result(); err != nil {
		return c.failed("read sessions", err)
	}
	c.learn(stored)
	for _, name := range names {
		if session, ok := strings.CutPrefix(name, "held:"); !ok {
			c.addBucket(c.lane.Tag + ":" + name)
		} else if !slices.Contains(c.sessions, session) {
			c.alone = append(c.alone, session)
		}
	}
	c.sessions = append(c.sessions, c.alone...)
	return nil
}

// learn takes over the bucket counts that Redis holds.
func (c *checker) learn(stored string) {
	c.lane.Learn(stored)
	c.stored, c.counts = stored, nil
	for part := range strings.SplitSeq(stored, ",") {
		if n, err := strconv.Atoi(part); err == nil && n > 0 && n <= c.lane.Buckets() {
			c.counts = append(c.counts, n)
		}
	}
	slices.Sort(c.counts)
	for i := range c.lane.Buckets() {
		c.addBucket(c.lane.Bucket(i))
	}
}

func (c *checker) addBucket(name string) {
	if c.index[name] == 0 {
		c.buckets = append(c.buckets, name)
		c.index[name] = 8 + len(c.buckets)
	}
}

// belongs is the bucket into which an id goes that lies in a wrong one.
func (c *checker) belongs(id string) int {
	if len(c.counts) == 0 {
		return c.lane.Home(id)
	}
	return key.Shard(id, c.counts[len(c.counts)-1])
}

// isHome reports whether some bucket count puts id into the bucket.
func (c *checker) isHome(id, bucket string) bool {
	return slices.ContainsFunc(c.counts, func(n int) bool { return c.lane.Bucket(key.Shard(id, n)) == bucket })
}

// suspect has an id judged, in a while.
func (c *checker) suspect(ctx context.Context, id string) error {
	if c.wrong[id] || slices.Contains(c.suspects, id) {
		return nil
	}
	c.suspects = append(c.suspects, id)
	if len(c.suspects) < maxJudged {
		return nil
	}
	return c.judge(ctx)
}

// judge judges all suspects.
func (c *checker) judge(ctx context.Context) error {
	const tries = 20 // each but the last may find that a session or a bucket count came meanwhile
	for try := 1; len(c.suspects) > 0; try++ {
		n := max(1, min(maxJudged, maxLooks/(len(c.buckets)+len(c.sessions)), maxPassed/(1+c.ready)))
		n = min(n, len(c.suspects))
		call := c.call(c.suspects[:n])
		if err := script.Run(ctx, c.rdb, call); err != nil {
			return c.failed("judge ids", err)
		}
		switch call.Reply[0] {
		case "ok":
			c.take(call.Reply[1])
			c.suspects, try = c.suspects[n:], 0
		case "counts":
			c.learn(str(call.Reply[1]))
		default:
			for _, session := range call.Reply[1:] {
				c.sessions = append(c.sessions, str(session))
			}
		}
		if try == tries {
			return fmt.Errorf("inspect: check topic %q: sessions or bucket counts change too fast", c.lane.Topic)
		}
	}
	c.suspects = nil
	return nil
}

// call builds the check script's arguments; check.lua says how they lie.
func (c *checker) call(ids []string) *script.Call {
	l, wanted, mend := c.lane, c.stored, ""
	if len(c.counts) == 0 {
		wanted = l.Counts().Wanted
	}
	if c.mend {
		mend = "1"
	}
	keys := append(make([]string, 0, 8+len(c.buckets)+len(c.sessions)),
		l.Pool, l.Ready, l.Dead, l.Sessions, l.Attempts, l.Again, l.Meta, l.Stats)
	keys = append(keys, c.buckets...)
	args := append(make([]any, 0, 7+len(c.sessions)+(3+len(c.counts))*len(ids)),
		c.stored, wanted, mend, l.Alarm, PlacelessCause, len(c.buckets), len(c.counts))
	for _, session := range c.sessions {
		keys, args = append(keys, l.Held(session)), append(args, session)
	}
	for _, id := range ids {
		belongs := c.belongs(id)
		args = append(args, id, c.index[l.Bucket(belongs)], belongs)
		for _, n := range c.counts {
			args = append(args, c.index[l.Bucket(key.Shard(id, n))])
		}
	}
	return &script.Call{Script: checkScript, Keys: keys, Args: args}
}

// take hands on what the script found.
func (c *checker) take(reply any) {
	findings, _ := reply.([]any)
	for _, finding := range findings {
		words, _ := finding.([]any)
		f := Finding{Kind: Kind(str(words[0])), ID: str(words[1])}
		for _, name := range words[2:] {
			f.Keys = append(f.Keys, str(name))
		}
		c.wrong[f.ID] = true
		if f.Kind == NoSession {
			for _, held := range f.Keys {
				c.orphaned[held] = true
			}
		}
		c.found(f)
	}
}

// adopt mends held sets of no session.
func (c *checker) adopt(ctx context.Context) error {
	if !c.mend {
		return nil
	}
	for held := range c.orphaned {
		session := strings.TrimPrefix(held, c.lane.Held(""))
		call := &script.Call{Script: adoptScript, Keys: []string{c.lane.Sessions, held}, Args: []any{session, c.lane.Alarm}}
		if err := script.Run(ctx, c.rdb, call); err != nil {
			return c.failed("give back what no session holds", err)
		}
	}
	return nil
}

func (c *checker) failed(what string, err error) error {
	return fmt.Errorf("inspect: check topic %q: %s: %w", c.lane.Topic, what, err)
}
