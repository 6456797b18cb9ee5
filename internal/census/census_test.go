package census_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestCount(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
		if err != nil {
			t.Fatal(err)
		}
		var topics []string
		for n := range 20 {
			topic := fmt.Sprint("t", n)
			topics = append(topics, topic)
			for range n {
				if _, err := q.PublishEvent(t.Context(), topic, nil, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
		counts, err := census.Count(t.Context(), q, topics)
		if err != nil || len(counts) != len(topics) {
			t.Fatalf("%d counts, %v", len(counts), err)
		}
		for n, c := range counts {
			if c.Scheduled != n {
				t.Errorf("topic %s: %d scheduled", topics[n], c.Scheduled)
			}
		}
		if counts, err := census.Count(t.Context(), q, nil); err != nil || len(counts) != 0 {
			t.Errorf("no topics: %v, %v", counts, err)
		}
		if _, err := census.Count(t.Context(), q, append(topics, "bad{")); err == nil {
			t.Error("a topic that cannot be counted: no error")
		}
	})
}
