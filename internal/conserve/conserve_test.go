package conserve_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/conserve"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestBreaches(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb, tag := env.Client, "{"+env.Namespace+":orders}"
		var want []string
		check := func(what string, live int64, breaches ...string) {
			t.Helper()
			want = append(want, breaches...)
			slices.Sort(want)
			n, got, err := conserve.Breaches(t.Context(), rdb, "{"+env.Namespace+":*")
			if err != nil || n != live || !slices.Equal(got, want) {
				t.Errorf("%s: %d events, %q, %v; want %d, %q", what, n, got, err, live, want)
			}
		}
		check("nothing", 0)
		rdb.HSet(t.Context(), tag+":pool", "a", "", "b", "", "c", "", "d", "")
		rdb.ZAdd(t.Context(), tag+":bucket:3", redis.Z{Score: 1, Member: "a"})
		rdb.RPush(t.Context(), tag+":ready", "b")
		rdb.SAdd(t.Context(), tag+":held:s", "c")
		rdb.ZAdd(t.Context(), tag+":sessions", redis.Z{Score: 1, Member: "s"})
		rdb.ZAdd(t.Context(), tag+":dead", redis.Z{Score: 1, Member: "d"})
		rdb.HSet(t.Context(), tag+":attempts", "a", "1||")
		check("one in each place", 3)
		rdb.HSet(t.Context(), tag+":pool", "e", "")
		check("one nowhere", 3, tag+"e lies nowhere")
		rdb.RPush(t.Context(), tag+":ready", "a")
		check("one in two places", 4, tag+"a lies bucket:3 ready")
		rdb.RPush(t.Context(), tag+":ready", "f")
		check("one without a record", 5, tag+"f without a record lies ready")
		rdb.HSet(t.Context(), tag+":again", "g", "keep:1:1")
		check("a mark without an event", 5, "again of "+tag+"g is left over")
		rdb.Del(t.Context(), tag+":sessions")
		check("held by nobody", 5, tag+"s holds events and is no session")
	})
}
