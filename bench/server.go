package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of our own, which keeps nothing on disk.
type server struct {
	addr   string
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{} // closed when the process has ended
}

// startServer returns once the server answers.
func startServer(ctx context.Context) (*server, error) {
	bin, err := serverBinary()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		s, err := tryServer(ctx, bin)
		if err == nil {
			return s, nil
		}
		if attempt == 3 || ctx.Err() != nil { // else somebody may have taken the port
			return nil, err
		}
	}
}

func serverBinary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errors.New("no redis-server or valkey-server on PATH: scripts/need-redis installs one, or name one with -redis")
}

func tryServer(ctx context.Context, bin string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	s := &server{addr: net.JoinHostPort("127.0.0.1", port), ended: make(chan struct{})}
	s.cmd = exec.Command(bin, "--port", port, "--bind", "127.0.0.1", "--dir", os.TempDir(), "--save", "", "--appendonly", "no")
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	// In a process group of its own, it does not get the terminal's Ctrl-C: we do, and end it when we have tidied up.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // how it ended is in its output
	}()
	if err := s.await(ctx); err != nil {
		s.kill()
		return nil, fmt.Errorf("start %s at %s: %w\n%s", bin, s.addr, err, s.output.Bytes())
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// await returns when the server answers, and is the process we started.
func (s *server) await(ctx context.Context) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	for range 500 {
		info, err := readInfo(ctx, rdb, "server")
		if err == nil && info["process_id"] == strconv.Itoa(s.cmd.Process.Pid) {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended")
		default:
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("no answer in 5s")
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill() // an error says that it has ended already
	<-s.ended
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
