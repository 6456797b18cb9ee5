package redistest

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Env is what a test body run by [Each] works on.
type Env struct {
	// Client is a client of this test alone, closed when it ends.
	Client redis.UniversalClient
	// Namespace is this test's alone. Other tests share the real server, so all
	// keys must begin with it, and nothing may flush the database.
	Namespace string
	// Addr is the server's host:port.
	Addr string
	// Mini is the miniredis, such as for moving its clock; nil on a real server.
	Mini *miniredis.Miniredis

	tb      testing.TB
	timeout time.Duration // of its clients
}

// NewClient is one more client of the same server, closed when the test ends.
func (e *Env) NewClient() *redis.Client { return newClient(e.tb, e.Addr, e.timeout) }

// Each runs body as two parallel subtests: "miniredis", on a fresh miniredis, and
// "redis", on one real server that they all share and that [Main] stops. Being
// parallel, they run after the test function that called Each has returned.
func Each(t *testing.T, body func(t *testing.T, env *Env)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		body(t, Mini(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		addr, err := shared.addr()
		if err != nil {
			giveUp(t, err)
		}
		body(t, newEnv(t, addr, 0))
	})
}

// miniTimeout is how long clients wait for a reply of a miniredis, whose Lua is
// slow: more than the few seconds that they wait for a server.
const miniTimeout = time.Minute

// Mini starts a miniredis for a test that needs its clock, or no real server.
func Mini(tb testing.TB) *Env {
	tb.Helper()
	mini := miniredis.RunT(tb)
	env := newEnv(tb, mini.Addr(), miniTimeout)
	env.Mini = mini
	return env
}

// newEnv is what a test works on. A timeout of 0 is the client's own.
func newEnv(tb testing.TB, addr string, timeout time.Duration) *Env {
	return &Env{
		Client:    newClient(tb, addr, timeout),
		Namespace: "test-" + strings.ToLower(rand.Text()),
		Addr:      addr,
		tb:        tb,
		timeout:   timeout,
	}
}
