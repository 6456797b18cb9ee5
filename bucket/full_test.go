package bucket_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/redistest"
)

// A full Redis refuses to publish under a key, wherever an event with it lies, and
// whatever the policy: nothing is changed.
func TestKeysInAFullRedis(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t, "--maxmemory-policy", "noeviction").Env()
	own, other := lane(env, "a", 3), lane(env, "a", 7)
	later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	publish(t, env, other, event("other", later))
	publish(t, env, own, event("scheduled", later), event("ready", past), event("held", past), event("dead", past))
	_, err := env.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, id := range []string{"held", "dead"} {
			p.LRem(t.Context(), own.Ready, 1, id)
			p.HSet(t.Context(), own.Attempts, id, "1|1|broken")
		}
		p.SAdd(t.Context(), own.Held("s"), "held")
		p.ZAdd(t.Context(), own.Dead, redis.Z{Score: 1, Member: "dead"})
		p.ConfigSet(t.Context(), "maxmemory", "1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dump := func() map[string]string {
		all := make(map[string]string)
		for _, name := range env.Client.Keys(t.Context(), "*").Val() {
			all[name] = env.Client.Dump(t.Context(), name).Val()
		}
		return all
	}
	before := dump()
	for _, l := range []int{3, 7, 9} { // the last is not registered yet
		for _, p := range []bucket.Policy{bucket.Reject, bucket.Keep, bucket.Replace} {
			for _, id := range []string{"new", "scheduled", "other", "ready", "held", "dead"} {
				for _, due := range []time.Time{later, past} {
					e := event(id, due)
					e.Keyed, e.Policy = true, p
					of := lane(env, "a", l)
					bucket.Publish(t.Context(), env.Client, []bucket.Batch{{Lane: of, Events: []*bucket.Event{e}}}, 0)
					if e.Err == nil || !strings.Contains(e.Err.Error(), "OOM") {
						t.Errorf("%s %s due %v, of %d buckets: %v", p, id, due, l, e.Err)
					}
				}
			}
		}
	}
	if after := dump(); len(before) < 8 || !maps.Equal(before, after) {
		t.Errorf("%d keys before, now %d, or others", len(before), len(after))
	}
}
