package dueq_test

import (
	"context"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestSmoke(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		got := make(chan *dueq.Event, 10)
		at := make(chan time.Time, 10)
		err := q.Subscribe("a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			at <- time.Now()
			got <- e
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []time.Duration{-time.Hour, 3 * time.Millisecond, 300 * time.Millisecond} {
			due := time.Now().Add(d)
			id, err := q.PublishEvent(t.Context(), "a", []byte("body"), due)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-got:
				t.Logf("%v: late %v", d, (<-at).Sub(due))
				if e.ID != id || string(e.Body) != "body" {
					t.Errorf("got %+v", e)
				}
			case <-time.After(patience):
				t.Fatal("not delivered")
			}
		}
	})
}
