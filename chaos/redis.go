package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/child"
)

// server is one redis-server of a run.
type server struct {
	*child.Server
	dir  string
	mode string        // of appendfsync, which survives a restart; "": it keeps nothing
	args []string      // more of them; a configuration file comes first
	rdb  *redis.Client // straight to it, for this program
	down atomic.Bool   // it is not expected to answer
}

// startServer starts a redis-server in a folder of its own, on a free port.
func startServer(ctx context.Context, dir, mode string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &server{dir: dir, mode: mode, args: args}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: s.Addr(), DialTimeout: time.Second, ReadTimeout: 5 * time.Second, ContextTimeoutEnabled: true})
	return s, nil
}

// start runs the server and returns once it answers.
func (s *server) start(ctx context.Context) error {
	args := s.args
	if s.mode != "" {
		args = append(args[:len(args):len(args)], "--appendonly", "yes", "--appendfsync", s.mode)
	}
	next, err := child.Redis(s.dir, args...)
	if err != nil {
		return err
	}
	next.Apart = true
	if s.Server == nil {
		s.Server = next
	}
	s.Args = next.Args
	if err := s.Start(ctx); err != nil || s.rdb == nil {
		return err
	}
	for range 100 { // after many failed dials the client's pool repeats the last failure for up to a second
		if err = s.rdb.Ping(ctx).Err(); err == nil || !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	return err
}

// port is the server's.
func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr()) // it has both
	return port
}

// signal sends the server a signal; one that does not run takes none.
func (s *server) signal(sig syscall.Signal) { s.Process().Signal(sig) }

// kill ends the server at once.
func (s *server) kill() { s.Process().Kill() }

func (s *server) close() {
	s.kill()
	_ = s.rdb.Close()
}

// config sets one of the server's parameters.
func (s *server) config(ctx context.Context, name, value string) error {
	if err := s.rdb.ConfigSet(ctx, name, value).Err(); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}
