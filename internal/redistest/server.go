package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/child"
)

// Server is a real redis-server that belongs to one test or benchmark.
type Server struct {
	tb   testing.TB
	addr string

	mu     sync.Mutex
	server *child.Server
}

// Start starts a redis-server on a free loopback port and returns once it
// answers. It keeps nothing on disk unless args say so: they are further flags,
// such as "--appendonly", "yes", and win over those that Start sets itself. The
// server is killed when tb ends.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, tb.TempDir(), args)
}

func start(tb testing.TB, dir string, args []string) *Server {
	tb.Helper()
	server, err := startIn(dir, args)
	if err != nil {
		giveUp(tb, err)
	}
	s := &Server{tb: tb, addr: server.Addr(), server: server}
	tb.Cleanup(s.Kill)
	return s
}

func startIn(dir string, args []string) (*child.Server, error) {
	server, err := child.Redis(dir, args...)
	if err == nil {
		err = server.Start(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	return server, nil
}

// Addr is the server's host:port. It stays the same over [Server.Restart].
func (s *Server) Addr() string { return s.addr }

// Client is a new client of the server, closed when the test ends.
func (s *Server) Client() *redis.Client { return newClient(s.tb, s.addr, 0) }

// Env is what a test body works on, as [Each] hands it out, on this server.
func (s *Server) Env() *Env { return newEnv(s.tb, s.addr, 0) }

// Stop sends SIGTERM and returns when the server has ended. A stopped server
// stays as it is.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill sends SIGKILL and returns when the server has ended. A stopped server
// stays as it is.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Restart starts the server again, with the same port, folder and flags, and
// returns once it answers: with --appendonly yes it has its data back. A server
// that still runs is stopped first. Like tb.Fatal, it is for the test's own
// goroutine.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	s.mu.Lock()
	err := s.server.Start(context.Background())
	s.mu.Unlock()
	if err != nil {
		s.tb.Fatal(err)
	}
}

func (s *Server) end(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Stop(sig)
}

func newClient(tb testing.TB, addr string, timeout time.Duration) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: timeout})
	closeAtEnd(tb, rdb)
	return rdb
}

// closeAtEnd closes rdb when the test ends, unless the test did.
func closeAtEnd(tb testing.TB, rdb redis.UniversalClient) {
	tb.Cleanup(func() {
		if err := rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("redistest: close client: %v", err)
		}
	})
}

// giveUp ends the test for want of a server: by a skip if none is installed and
// none is required.
func giveUp(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, child.ErrNoRedis) && os.Getenv("REQUIRE_REDIS") != "1" {
		tb.Skipf("%v", err)
	}
	tb.Fatal(err)
}
