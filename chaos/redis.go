package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverPatience is how long a server may take to start or stop.
const serverPatience = 30 * time.Second

// server is one redis-server of a run.
type server struct {
	bin, dir string
	port     int
	mode     string   // of appendfsync, which survives a restart; "": it keeps nothing
	args     []string // more of them; a configuration file comes first
	proc     *process
	log      *os.File
	rdb      *redis.Client // straight to it, for this program
	down     atomic.Bool   // it is not expected to answer
}

// startServer starts a redis-server in a folder of its own, on a free port.
func startServer(ctx context.Context, dir, mode string, args ...string) (*server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if bin, err = exec.LookPath("valkey-server"); err != nil {
			return nil, errors.New("neither redis-server nor valkey-server is on PATH (scripts/need redis-server installs one)")
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &server{bin: bin, dir: dir, mode: mode, args: args}
	if s.log, err = os.Create(filepath.Join(dir, "redis.log")); err != nil {
		return nil, err
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: s.addr(), DialTimeout: time.Second, ReadTimeout: 5 * time.Second, ContextTimeoutEnabled: true})
	if err := s.start(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// start runs the server and returns once it answers.
func (s *server) start(ctx context.Context) error {
	args := slices.Concat(s.args, []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", ""})
	if s.mode != "" {
		args = append(args, "--appendonly", "yes", "--appendfsync", s.mode)
	}
	var err error
	if s.proc, err = startProcess(s.log, s.bin, args...); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; {
		if s.rdb.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.proc.done:
			return fmt.Errorf("%s ended: %s", s.bin, s.logTail())
		case <-tick.C:
		}
		if time.Since(start) > serverPatience {
			return fmt.Errorf("%s does not answer: %s", s.bin, s.logTail())
		}
	}
}

func (s *server) logTail() []byte {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-2000):])
}

func (s *server) close() {
	if s.proc != nil {
		s.proc.signal(syscall.SIGCONT)
		s.proc.kill()
	}
	_ = s.rdb.Close()
	_ = s.log.Close()
}

// freePort is a port that nobody listens on. It lies below the ports that systems
// give to outgoing connections, so that it stays free while nobody does, and so
// does port+10000, on which the nodes of a cluster talk to each other.
func freePort() (int, error) {
	for range 100 {
		port := 10_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port")
}

// config sets one of the server's parameters.
func (s *server) config(ctx context.Context, name, value string) error {
	if err := s.rdb.ConfigSet(ctx, name, value).Err(); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}
