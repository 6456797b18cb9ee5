package redistest_test

import (
	"net"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestStart(t *testing.T) {
	t.Parallel()
	a := redistest.Start(t)
	b := redistest.Start(t, "--maxmemory", "5mb", "--save", "60 1")
	if a.Addr() == b.Addr() {
		t.Fatalf("two servers at %s", a.Addr())
	}
	for _, c := range []struct {
		server      *redistest.Server
		name, value string
	}{
		{a, "save", ""},
		{a, "appendonly", "no"},
		{a, "maxmemory", "0"},
		{b, "save", "60 1"},
		{b, "maxmemory", "5242880"},
	} {
		got, err := c.server.Client().ConfigGet(t.Context(), c.name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got[c.name] != c.value {
			t.Errorf("%s = %q, want %q", c.name, got[c.name], c.value)
		}
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, appendonly string
		end              func(*redistest.Server)
		kept             int64
	}{
		{"AOF, stopped", "yes", (*redistest.Server).Stop, 1},
		{"AOF, killed", "yes", (*redistest.Server).Kill, 1},
		{"AOF, running", "yes", func(*redistest.Server) {}, 1},
		{"memory, stopped", "no", (*redistest.Server).Stop, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, "--appendonly", c.appendonly, "--appendfsync", "always")
			addr, rdb := s.Addr(), s.Client()
			if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			c.end(s)
			s.Restart()
			if s.Addr() != addr {
				t.Errorf("restarted at %s, was at %s", s.Addr(), addr)
			}
			if n, err := rdb.Exists(t.Context(), "k").Result(); err != nil || n != c.kept {
				t.Errorf("keys after restart = %d, %v, want %d", n, err, c.kept)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redistest.Server){
		"stop": (*redistest.Server).Stop,
		"kill": (*redistest.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			end(s)
			end(s)
			if accepts(s.Addr()) {
				t.Error("the server still listens")
			}
		})
	}
}

func TestBadFlag(t *testing.T) {
	t.Parallel()
	redistest.Start(t) // skips without a server
	r := record(t, func(tb testing.TB) { redistest.Start(tb, "--no-such-flag", "1") })
	if !strings.Contains(r.failure, "no-such-flag") {
		t.Errorf("failure = %q, want what the server said", r.failure)
	}
}

func TestNoServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REQUIRE_REDIS", "")
	r := record(t, func(tb testing.TB) { redistest.Start(tb) })
	if r.failure != "" || !strings.Contains(r.skip, "redis-server") {
		t.Errorf("not required: failure %q, skip %q", r.failure, r.skip)
	}
	t.Setenv("REQUIRE_REDIS", "1")
	r = record(t, func(tb testing.TB) { redistest.Start(tb) })
	if r.skip != "" || !strings.Contains(r.failure, "redis-server") {
		t.Errorf("required: failure %q, skip %q", r.failure, r.skip)
	}
}

// accepts reports whether anybody listens at addr.
func accepts(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
