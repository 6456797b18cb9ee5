package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/chaos/history"
)

// newServer is a server that ends with the test.
func newServer(t *testing.T) *server {
	t.Helper()
	needServer(t)
	s, err := startServer(t.Context(), t.TempDir(), history.Always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// An interrupt ends a run soon, whatever it does.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	needServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"-workers", "1"}, &stdout, &stderr); code != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("code %d, %s%s", code, &stdout, &stderr)
	}
}

// A server keeps its data when it is killed and started again.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if err := s.rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := s.rdb.Get(t.Context(), "k").Result(); v != "v" || err != nil {
		t.Errorf("after the restart: %q, %v", v, err)
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const tag = "{chaos:orders}"
	s.rdb.HSet(t.Context(), tag+":pool", "a", "", "b", "", "c", "", "d", "", "e", "")
	s.rdb.ZAdd(t.Context(), tag+":bucket:3", redis.Z{Score: 1, Member: "a"})
	s.rdb.RPush(t.Context(), tag+":ready", "b")
	s.rdb.SAdd(t.Context(), tag+":held:s", "c")
	s.rdb.ZAdd(t.Context(), tag+":dead", redis.Z{Score: 1, Member: "d"})
	left, err := (&topology{shape: single, rdb: s.rdb}).left(t.Context())
	states := make(map[string]string)
	for _, l := range left {
		states[l.ID] = l.State
	}
	if err != nil || len(left) != 5 || states["d"] != history.Dead || states["a"] != history.Stuck || states["b"] != history.Stuck {
		t.Errorf("left %+v, %v", left, err)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l, err := newLink("w0", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.cut()
	rdb := redis.NewClient(&redis.Options{Addr: l.addr(), ReadTimeout: 100 * time.Millisecond, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	ping := func(what string, works bool) {
		t.Helper()
		err := rdb.Ping(t.Context()).Err()
		if works { // the first connection may be one that was broken
			for range 20 {
				if err != nil {
					err = rdb.Ping(t.Context()).Err()
				}
			}
		}
		if (err == nil) != works {
			t.Errorf("%s: PING = %v", what, err)
		}
	}
	ping("at first", true)
	l.cut()
	ping("cut", false)
	if err := l.mend(); err != nil {
		t.Fatal(err)
	}
	ping("mended", true)
	for _, name := range []string{"half", "lag", "narrow"} {
		for dice := range uint64(2) {
			toxic := toxicOf(step{faultKind: faultKind{name: name}, dice: dice})
			if err := l.spoil(toxic); err != nil {
				t.Fatalf("%s: %v", toxic, err)
			}
			if name == "half" {
				ping(toxic, false)
			}
			if err := l.clear(); err != nil {
				t.Fatalf("after %s: %v", toxic, err)
			}
			ping("after "+toxic, true)
		}
	}
}

// A worker that uses more and more is noticed.
func TestGrowth(t *testing.T) {
	t.Parallel()
	var records []history.Record
	for i := range 40 {
		records = append(
			records,
			history.Record{Proc: "w0.1", Kind: history.Sampled, Heap: 10 << 20, Goroutines: 100},
			history.Record{Proc: "w1.1", Kind: history.Sampled, Heap: uint64(i) * 10 << 20, Goroutines: 100},
			history.Record{Proc: "w2.1", Kind: history.Sampled, Heap: 10 << 20, Goroutines: 30 * i},
		)
	}
	records = append(records, history.Record{Proc: "w3.1", Kind: history.Sampled, Heap: 1 << 40})
	var grew []string
	all := growths(records)
	for _, g := range all {
		if g.grew() {
			grew = append(grew, g.Worker)
		}
	}
	if len(all) != 3 || !slices.Equal(grew, []string{"w1.1", "w2.1"}) {
		t.Errorf("%v of %v grew", grew, all)
	}
}

// A report shows what was not kept, and with what evidence.
func TestPrint(t *testing.T) {
	t.Parallel()
	r := &report{Result: history.Check([]history.Record{
		{At: 1, Proc: "w0.1", Kind: history.Publish, Topic: "orders", ID: "x", Pub: "w0.1/1", Due: 5},
		{At: 2, Proc: "w0.1", Kind: history.Published, Topic: "orders", ID: "x", Pub: "w0.1/1", Outcome: history.OK},
	}), Breaches: []string{"conservation: x lies nowhere"}, Histories: "/somewhere"}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{
		"1 VIOLATIONS, 1 breaches", "/somewhere", "conservation: x lies nowhere", "loss: topic orders, id x", "publish     pub=w0.1/1 due=5",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
