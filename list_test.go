package dueq_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

func ExampleQueue_List() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	noon := time.Now().Add(time.Hour)
	for i, id := range []string{"tea", "lunch", "nap"} {
		if _, err := q.PublishEvent(ctx, "day", []byte("time for "+id), noon.Add(time.Duration(i)*time.Minute), dueq.WithID(id)); err != nil {
			fmt.Println(err)
			return
		}
	}
	query := dueq.Query{State: dueq.StateScheduled, Limit: 2, Preview: 8}
	for {
		page, err := q.List(ctx, "day", query)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range page.Events {
			fmt.Printf("%s: %s… (%d bytes)\n", e.ID, e.Body, e.BodySize)
		}
		if page.Next == "" {
			break
		}
		query.Cursor = page.Next
	}
	// Output:
	// tea: time for… (12 bytes)
	// lunch: time for… (14 bytes)
	// nap: time for… (12 bytes)
}

func ExampleQueue_Requeue() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	err := q.Subscribe("invoice", dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		return dueq.SkipRetry(errors.New("no such customer"))
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(ctx, "invoice", nil, time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	for {
		if s, err := q.Stats(ctx, "invoice"); err != nil || s.Dead == 1 {
			break
		}
	}
	n, err := q.Requeue(ctx, "invoice", dueq.Filter{Error: "customer"}, time.Now().Add(time.Hour))
	fmt.Println(n, err)
	// Output: 1 <nil>
}

func ExampleQueue_RequeueEvent() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	if _, err := q.PublishEvent(ctx, "invoice", nil, time.Now().Add(time.Hour), dueq.WithID("1017")); err != nil {
		fmt.Println(err)
		return
	}
	err := q.RequeueEvent(ctx, "invoice", "1017", time.Now())
	fmt.Println(errors.Is(err, dueq.ErrNotDead)) // so it stays scheduled
	// Output: true
}

func ExampleQueue_Forecast() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()
	for _, ahead := range []time.Duration{30 * time.Second, 10 * time.Minute, 20 * time.Minute} {
		if _, err := q.PublishEvent(ctx, "reminder", nil, time.Now().Add(ahead)); err != nil {
			fmt.Println(err)
			return
		}
	}
	n, err := q.Forecast(ctx, "reminder", time.Minute, time.Hour, 24*time.Hour)
	fmt.Println("next minute, hour, day:", n, err)
	// Output: next minute, hour, day: [1 2 0] <nil>
}

// list reads all pages.
func list(t *testing.T, q *dueq.Queue, query dueq.Query) (events []*dueq.EventInfo) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := q.List(t.Context(), topic, query)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if query.Limit > 0 && len(page.Events) > query.Limit || pages > 10_000 {
			t.Fatalf("page %d has %d events", pages, len(page.Events))
		}
		events = append(events, page.Events...)
		if query.Cursor = page.Next; page.Next == "" {
			return events
		}
	}
}

func eventIDs(events []*dueq.EventInfo) []string {
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids
}

// What is scheduled is listed by due time, whichever bucket, lane and partition
// count it is in, and however many events are due at one time.
func TestListScheduled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const each = 60
		begin := time.Now().Add(time.Hour).Truncate(time.Second)
		queues := []*dueq.Queue{
			newQueue(t, env, dueq.Options{}), newQueue(t, env, dueq.Options{Buckets: 50}),
			newQueue(t, env, dueq.Options{Partitions: 3}), newQueue(t, env, dueq.Options{Partitions: 2, Buckets: 3}),
		}
		want := map[string]time.Time{}
		for i := range each {
			for n, q := range queues {
				due := begin.Add(time.Duration(i*7%each/5) * time.Second) // five at a time from each
				want[publish(t, q, topic, "x", due, dueq.WithID(fmt.Sprintf("%d of %d", i, n)))] = due
			}
		}
		for _, limit := range []int{1, 7, 100, 500} {
			got := list(t, queues[0], dueq.Query{State: dueq.StateScheduled, Limit: limit})
			seen := map[string]bool{}
			for i, e := range got {
				if seen[e.ID] || !e.Due.Equal(want[e.ID]) || e.State != dueq.StateScheduled || e.Topic != topic || e.BodySize != 1 || len(e.Body) != 0 {
					t.Errorf("limit %d: event %+v", limit, e)
				}
				seen[e.ID] = true
				if i > 0 && e.Due.Before(got[i-1].Due) {
					t.Errorf("limit %d: %v comes after %v", limit, e.Due, got[i-1].Due)
				}
			}
			if len(got) != len(want) {
				t.Errorf("limit %d: %d events, want %d", limit, len(got), len(want))
			}
		}
		filter := dueq.Filter{IDPrefix: "1", Since: begin.Add(time.Second), Until: begin.Add(4 * time.Second)}
		for _, e := range list(t, queues[2], dueq.Query{State: dueq.StateScheduled, Limit: 5, Filter: filter}) {
			if !strings.HasPrefix(e.ID, "1") || e.Due.Before(filter.Since) || !e.Due.Before(filter.Until) {
				t.Errorf("the filter took %q, due %v", e.ID, e.Due)
			}
			delete(want, e.ID)
		}
		for id, due := range want {
			if strings.HasPrefix(id, "1") && !due.Before(filter.Since) && due.Before(filter.Until) {
				t.Errorf("the filter did not take %q, due %v", id, due)
			}
		}
	})
}

// Paging goes on where it was, whatever has happened to the page's last event.
func TestListWhileEventsGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events = 50
		q := newQueue(t, env, dueq.Options{})
		pause(t, q)
		due := time.Now().Add(time.Hour)
		for _, state := range []dueq.State{dueq.StateScheduled, dueq.StateReady} {
			for i := range events {
				publish(t, q, topic, "x", due, dueq.WithID(fmt.Sprintf("%s%02d", state, i)))
			}
			due = past()
			query, seen := dueq.Query{State: state, Limit: 7}, []string(nil)
			for {
				page, err := q.List(t.Context(), topic, query)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Events {
					seen = append(seen, e.ID)
					if err := q.Cancel(t.Context(), topic, e.ID); err != nil {
						t.Fatal(err)
					}
				}
				if query.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			slices.Sort(seen)
			if len(seen) != events || len(slices.Compact(seen)) != events {
				t.Errorf("%d events were listed, want %d", len(seen), events)
			}
		}
	})
}

// What is leased and stays so is listed once, whatever is settled meanwhile, and
// however much one session holds.
func TestListLeasedWhileEventsGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		events := 5100
		if env.Mini != nil { // its cursors into large sets are offsets
			events = 300
		}
		q := newQueue(t, env, dueq.Options{})
		c, err := q.Consume(topic)
		if err != nil {
			t.Fatal(err)
		}
		publishMany(t, q, events, past())
		held := make(map[string]*dueq.Delivery)
		for len(held) < events {
			for _, d := range claim(t, c, 500, time.Hour) {
				held[d.ID] = d
			}
		}
		seen := make(map[string]int)
		query := dueq.Query{State: dueq.StateLeased, Limit: 70}
		for {
			page, err := q.List(t.Context(), topic, query)
			if err != nil || len(page.Events) > query.Limit {
				t.Fatalf("a page of %d: %v", len(page.Events), err)
			}
			for i, e := range page.Events {
				if seen[e.ID]++; e.State != dueq.StateLeased || held[e.ID] == nil {
					t.Errorf("listed %+v", e)
				}
				if i%2 == 0 {
					if err := held[e.ID].Ack(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%q was listed %d times", id, n)
			}
		}
		for _, d := range held {
			_ = d.Release(t.Context()) // half of them have ended
		}
		if len(seen) != events {
			t.Errorf("%d events were listed, want %d", len(seen), events)
		}
	})
}

// Each state is listed in its order.
func TestListStates(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Concurrency: 5, Backoff: never})
		st := newStage(t)
		subscribe(t, q, topic, st)
		var died []string
		for i, cause := range []string{"no route", "no host", "refused", "no route"} {
			id := publish(t, q, topic, "x", past(), dueq.WithID(fmt.Sprint("dead ", i)))
			st.next().end(dueq.SkipRetry(errors.New(cause)))
			at := awaitState(t, q, topic, id, dueq.StateDead).DiedAt
			eventually(t, "a later moment", func() bool { return time.Now().After(at.Add(2 * time.Millisecond)) })
			died = append([]string{id}, died...)
		}
		publish(t, q, topic, "x", past(), dueq.WithID("retried"), dueq.WithMetadata(map[string]string{"a": "b"}))
		st.next().end(errBroken)
		awaitState(t, q, topic, "retried", dueq.StateScheduled)
		var held []string
		for i := range 5 {
			held = append(held, publish(t, q, topic, "x", past(), dueq.WithID(fmt.Sprint("held ", 4-i))))
			st.next()
		}
		slices.Sort(held)
		pause(t, q)
		var ready []string
		for i := range 9 {
			ready = append(ready, publish(t, q, topic, "x", past(), dueq.WithID(fmt.Sprint("ready ", 8-i))))
		}
		for limit := range 11 {
			for state, want := range map[dueq.State][]string{dueq.StateDead: died, dueq.StateLeased: held, dueq.StateReady: ready} {
				got := list(t, q, dueq.Query{State: state, Limit: limit})
				if !slices.Equal(eventIDs(got), want) {
					t.Errorf("limit %d, %s: %q, want %q", limit, state, eventIDs(got), want)
				}
			}
		}
		for filter, want := range map[dueq.Filter][]string{
			{Error: "no route"}:                     {"dead 3", "dead 0"},
			{Error: "no route", IDPrefix: "dead 0"}: {"dead 0"},
			{Error: "1|"}:                           {},
			{Since: time.Now().Add(-time.Hour)}:     died,
			{Until: time.Now().Add(-time.Hour)}:     {},
		} {
			if got := eventIDs(list(t, q, dueq.Query{State: dueq.StateDead, Limit: 1, Filter: filter})); !slices.Equal(got, want) {
				t.Errorf("%+v: %q, want %q", filter, got, want)
			}
		}
		retried := list(t, q, dueq.Query{State: dueq.StateScheduled, Filter: dueq.Filter{Error: errBroken.Error()}})
		if len(retried) != 1 || retried[0].Attempts != 1 || retried[0].LastError != errBroken.Error() || retried[0].Metadata["a"] != "b" {
			t.Errorf("retried %+v", retried)
		}
		dead := list(t, q, dueq.Query{State: dueq.StateDead, Limit: 1, Filter: dueq.Filter{Until: get(t, q, topic, "dead 1").DiedAt}})
		if got := eventIDs(dead); !slices.Equal(got, []string{"dead 0"}) || !dead[0].DiedAt.Equal(get(t, q, topic, "dead 0").DiedAt) {
			t.Errorf("died before the second: %q", got)
		}
	})
}

// A page of large bodies has their beginnings only, in whatever number of steps.
func TestListPreview(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events, size = 20, 1 << 20
		q := newQueue(t, env, dueq.Options{})
		body := "ä\n\x00" + strings.Repeat("b", size-4)
		for range events {
			publish(t, q, topic, body, time.Now().Add(time.Hour), dueq.WithMetadata(map[string]string{"a": "b"}))
		}
		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		strange := publish(t, q, topic, "", time.Now().Add(2*time.Hour))
		if err := env.Client.HSet(t.Context(), lane.Pool, strange, "no record").Err(); err != nil {
			t.Fatal(err)
		}
		for preview, want := range map[int]string{0: "", 1: body[:1], 100: body[:100], size - 1: body[:size-1], size: body, 2 * size: body} {
			got := list(t, q, dueq.Query{State: dueq.StateScheduled, Preview: preview})
			if len(got) != events+1 {
				t.Fatalf("%d events, want %d", len(got), events+1)
			}
			for _, e := range got[:events] {
				if string(e.Body) != want || e.BodySize != size || e.Metadata["a"] != "b" || e.EffectTime.IsZero() {
					t.Errorf("preview %d: %d bytes of %d, metadata %v", preview, len(e.Body), e.BodySize, e.Metadata)
				}
			}
			if e := got[events]; e.ID != strange || e.BodySize != len("no record") || string(e.Body) != "no record"[:min(preview, 9)] {
				t.Errorf("preview %d: the unreadable record %+v", preview, e)
			}
		}
		if e := get(t, q, topic, strange); e.BodySize != len("no record") {
			t.Errorf("the unreadable record %+v", e)
		}
	})
}

// With a filter that takes next to nothing, a page ends before it has looked at
// everything.
func TestListLooksAtSomeOnly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events = 6000
		q := newQueue(t, env, dueq.Options{})
		publishMany(t, q, events, time.Now().Add(time.Hour))
		last := publish(t, q, topic, "x", time.Now().Add(2*time.Hour), dueq.WithID("the last"))
		query := dueq.Query{State: dueq.StateScheduled, Filter: dueq.Filter{IDPrefix: "the l"}}
		page, err := q.List(t.Context(), topic, query)
		if err != nil || len(page.Events) != 0 || page.Next == "" {
			t.Errorf("the first page: %+v, %v", page, err)
		}
		if got := eventIDs(list(t, q, query)); !slices.Equal(got, []string{last}) {
			t.Errorf("listed %q", got)
		}
		query.Filter = dueq.Filter{}
		if got := list(t, q, query); len(got) != events+1 {
			t.Errorf("%d events, want %d", len(got), events+1)
		}
	})
}

func TestListRefuses(t *testing.T) {
	q := newQueue(t, redistest.Mini(t), dueq.Options{})
	if page, err := q.List(t.Context(), "never used", dueq.Query{State: dueq.StateDead}); err != nil || len(page.Events) != 0 || page.Next != "" {
		t.Errorf("an unused topic: %+v, %v", page, err)
	}
	for range 3 {
		publish(t, q, topic, "x", time.Now().Add(time.Hour))
	}
	page, err := q.List(t.Context(), topic, dueq.Query{State: dueq.StateScheduled, Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Now()
	for _, query := range []dueq.Query{
		{},
		{State: "alive"},
		{State: dueq.StateDead, Limit: -1},
		{State: dueq.StateDead, Limit: 501},
		{State: dueq.StateDead, Preview: -1},
		{State: dueq.StateDead, Cursor: "?"},
		{State: dueq.StateDead, Cursor: "AAAA"},
		{State: dueq.StateDead, Cursor: page.Next},
		{State: dueq.StateScheduled, Cursor: page.Next + "A"},
		{State: dueq.StateScheduled, Cursor: encode([]byte(`{"State":"scheduled"}`))},
		{State: dueq.StateScheduled, Cursor: encode([]byte(`{"State":"scheduled","At":"nan"}`))},
		{State: dueq.StateScheduled, Cursor: encode([]byte(`{"State":"scheduled","At":"0x1p4"}`))},
		{State: dueq.StateReady, Cursor: encode([]byte(`{"State":"ready","Lane":-1}`))},
		{State: dueq.StateReady, Cursor: encode([]byte(`{"State":"ready","At":"1"}`))},
		{State: dueq.StateLeased, Cursor: encode([]byte(`{"State":"leased","Scan":-1}`))},
		{State: dueq.StateLeased, Cursor: encode([]byte(`{"State":"leased","End":1.5}`))},
		{State: dueq.StateReady, Filter: dueq.Filter{Since: now}},
		{State: dueq.StateLeased, Filter: dueq.Filter{Until: now}},
	} {
		if _, err := q.List(t.Context(), topic, query); !errors.Is(err, dueq.ErrQueryInvalid) {
			t.Errorf("%+v: %v", query, err)
		}
	}
	if _, err := q.List(t.Context(), "a{b", dueq.Query{State: dueq.StateDead}); !errors.Is(err, dueq.ErrTopicInvalid) {
		t.Errorf("a bad topic: %v", err)
	}
	for _, ahead := range [][]time.Duration{{}, {0}, {-1}, {2, 1}, make([]time.Duration, 101)} {
		if _, err := q.Forecast(t.Context(), topic, ahead...); !errors.Is(err, dueq.ErrQueryInvalid) {
			t.Errorf("forecast of %v: %v", ahead, err)
		}
	}
	if _, err := q.Requeue(t.Context(), topic, dueq.Filter{}, time.Time{}); !errors.Is(err, dueq.ErrEventInvalid) {
		t.Errorf("requeue at no time: %v", err)
	}
	for _, s := range []dueq.State{dueq.StateLeased, "", "x"} {
		if _, err := q.Purge(t.Context(), topic, s); !errors.Is(err, dueq.ErrQueryInvalid) {
			t.Errorf("purge of %q: %v", s, err)
		}
	}
	far := encode([]byte(`{"State":"ready","Lane":1000000,"ID":"x"}`))
	if page, err := q.List(t.Context(), topic, dueq.Query{State: dueq.StateReady, Cursor: far}); err != nil || len(page.Events) != 0 {
		t.Errorf("behind the last partition: %+v, %v", page, err)
	}
	shutDown(t, q)
	if _, err := q.List(t.Context(), topic, dueq.Query{State: dueq.StateDead}); !errors.Is(err, dueq.ErrShutDown) {
		t.Errorf("after ShutDown: %v", err)
	}
}

// Whatever text is given for a cursor, a list tells what is wrong with it, or goes
// on from there.
func FuzzCursor(f *testing.F) {
	encode := base64.RawURLEncoding.EncodeToString
	for _, c := range []string{
		`{"State":"scheduled","At":"1732184357123","Lane":0,"Bucket":3,"ID":"a"}`, `{"State":"dead","At":"-inf"}`, `{"State":"ready","ID":"b"}`,
		`{"State":"leased","Lane":99999999999999999999}`, `{"State":"ready","Lane":9223372036854775807}`, `{"State":"dead","At":"1e309"}`, `[]`, `null`,
		`{"State":"leased","Session":"s","Scan":5,"End":7,"ID":"a"}`, `{"State":"leased","Scan":-1}`, `{"State":"leased","End":1e40}`,
	} {
		f.Add(encode([]byte(c)))
	}
	f.Add("")
	f.Add("=")
	q, closeAll := open(dueq.Options{})
	f.Cleanup(closeAll)
	events := []dueq.NewEvent{{EffectTime: time.Now()}, {EffectTime: time.Now().Add(time.Hour)}, {EffectTime: time.Now().Add(time.Hour)}}
	if _, err := q.PublishEvents(f.Context(), topic, events); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, s := range []dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateLeased, dueq.StateDead} {
			page, err := q.List(t.Context(), topic, dueq.Query{State: s, Cursor: cursor, Limit: 1})
			if err != nil && !errors.Is(err, dueq.ErrQueryInvalid) || err == nil && len(page.Events) > 1 {
				t.Errorf("%s, %q: %+v, %v", s, cursor, page, err)
			}
		}
	})
}
