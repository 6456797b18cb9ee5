package bucket

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// requeueBytes are the bytes of records after which one step of [Requeue] ends.
const requeueBytes = 4 << 20

//go:embed requeue.lua
var requeueSource string

var requeueScript = script.New(requeueSource)

// Requeue schedules those of at most 500 ids that are dead in the lane anew, due
// at the given time in milliseconds since 1970, and returns how many. On an error,
// [ErrOutcomeUnknown] or why Redis refused, these are those of the steps before.
func Requeue(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, ids []string, due int64) (n int, err error) {
	for try := 1; len(ids) > 0; {
		c := requeueCall(l, ids, due)
		_ = script.Run(ctx, rdb, c)
		if stored, stale := staleCounts(c); stale && try < maxTries {
			l.Learn(stored)
			try++
			continue
		}
		if err := callError(c, l, "requeue"); err != nil {
			return n, err
		}
		looked, _ := c.Reply[1].(int64)
		moved, _ := c.Reply[2].(int64)
		n += int(moved)
		ids = ids[looked:]
	}
	return n, nil
}

func requeueCall(l *key.Lane, ids []string, due int64) *script.Call {
	counts := l.Counts()
	keys := fixedKeys(l, 1)
	index := make(map[int]int) // in KEYS, by bucket
	args := []any{counts.Stored, counts.Wanted, l.Alarm, due, requeueBytes}
	for _, id := range ids {
		home := counts.Homes(id)[0]
		if index[home] == 0 {
			keys = append(keys, l.Bucket(home))
			index[home] = len(keys)
		}
		args = append(args, id, index[home], home)
	}
	return &script.Call{Script: requeueScript, Keys: keys, Args: args}
}
