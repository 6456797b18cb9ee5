package dueq_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func ExampleQueue_Sessions() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	err := q.Subscribe("order.close", dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		sessions, err := q.Sessions(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(sessions) > 0 { // it announces itself a moment after it has subscribed
			s := sessions[0]
			fmt.Println(s.PID == os.Getpid(), s.Topics, s.Held)
			return
		}
	}
	// Output: true [order.close] 0
}

// awaitSessions polls until the sessions serve these topics, in the order in
// which they started, and hold so many events.
func awaitSessions(t *testing.T, q *dueq.Queue, topics [][]string, held ...int) (list []dueq.Session) {
	t.Helper()
	eventually(t, fmt.Sprintf("sessions of %v that hold %v", topics, held), func() bool {
		var err error
		if list, err = q.Sessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		ok := len(list) == len(topics)
		for i := range topics {
			ok = ok && slices.Equal(list[i].Topics, topics[i]) && list[i].Held == held[i]
		}
		return ok
	})
	return list
}

// Who subscribes or consumes is listed with what it holds, in all partitions,
// until it is shut down.
func TestSessions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first, second := newQueue(t, env, dueq.Options{}), newQueue(t, env, dueq.Options{Partitions: 3})
		awaitSessions(t, first, nil)
		publish(t, first, "published to", "x", time.Now().Add(time.Hour))
		awaitSessions(t, second, nil)
		st, atSecond := newStage(t), newStage(t)
		subscribe(t, first, "b", st)
		awaitSessions(t, second, [][]string{{"b"}}, 0)
		c, err := first.Consume("a")
		if err != nil {
			t.Fatal(err)
		}
		subscribe(t, second, "c", atSecond)
		publish(t, first, "a", "x", past())
		claimed, err := c.Claim(t.Context(), 1, time.Minute)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("claimed %v, %v", claimed, err)
		}
		publish(t, first, "b", "x", past())
		var acts []*act
		for range 7 {
			publish(t, second, "c", "x", past())
			acts = append(acts, atSecond.next())
		}
		list := awaitSessions(t, second, [][]string{{"a", "b"}, {"c"}}, 2, 7)
		host, _ := os.Hostname()
		for _, s := range list {
			if s.ID == "" || s.Host != host || s.PID != os.Getpid() || s.MoreTopics != 0 ||
				time.Since(s.Started).Abs() > time.Minute || time.Since(s.LastSeen).Abs() > time.Minute {
				t.Errorf("session %+v", s)
			}
		}
		st.next().end(nil)
		if err := claimed[0].Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitSessions(t, second, [][]string{{"a", "b"}, {"c"}}, 0, 7)
		shutDown(t, first)
		awaitSessions(t, second, [][]string{{"c"}}, 7)
		for _, a := range acts {
			a.end(nil)
		}
		awaitSessions(t, second, [][]string{{"c"}}, 0)
	})
}

// However many topics a session has, it tells of some.
func TestSessionsOfManyTopics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		var names []string
		for i := range 250 {
			names = append(names, fmt.Sprintf("topic %03d", i))
			subscribe(t, q, names[i], seen(nil))
		}
		eventually(t, "all are told of", func() bool {
			list, err := q.Sessions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(list) == 1 && slices.Equal(list[0].Topics, names[:100]) && list[0].MoreTopics == 150
		})
	})
}

// What a session holds under the names it took when it lost its leases is its
// own, and what was taken from it is not.
func TestSessionsHeldUnderOtherNames(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lanes := []*key.Lane{key.NewLane(env.Namespace, "a", 0, 1, 16), key.NewLane(env.Namespace, "b", 1, 2, 16)}
		for _, l := range lanes {
			for i, name := range []string{"s", "s.1", "s.12", "!s", "t"} {
				if err := env.Client.ZAdd(t.Context(), l.Sessions, redis.Z{Score: float64(i), Member: name}).Err(); err != nil {
					t.Fatal(err)
				}
				for n := range i + 1 {
					if err := env.Client.SAdd(t.Context(), l.Held(name), fmt.Sprint(n)).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		held, err := inspect.Held(t.Context(), env.Client, lanes)
		if err != nil || held["s"] != 2*(1+2+3) || held["t"] != 2*5 {
			t.Errorf("held %v, %v", held, err)
		}
	})
}
