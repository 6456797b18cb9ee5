// Package measure starts servers, gives them work, meters what they and this
// process use up meanwhile, and prints the figures.
package measure

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

// Server is a server process of our own, on a loopback port.
type Server struct {
	addr   string
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{} // closed when the process has ended
}

// StartRedis starts a redis-server or a valkey-server, which keeps nothing on disk,
// and returns once it answers.
func StartRedis(ctx context.Context) (*Server, error) {
	bin, err := redisBinary()
	if err != nil {
		return nil, err
	}
	args := func(port string) []string {
		return []string{"--port", port, "--bind", "127.0.0.1", "--dir", os.TempDir(), "--save", "", "--appendonly", "no"}
	}
	return Start(ctx, bin, args, func(ctx context.Context, addr string) (pid string, err error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer func() { _ = rdb.Close() }()
		info, err := readInfo(ctx, rdb, "server")
		return info["process_id"], err
	})
}

func redisBinary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errors.New("no redis-server or valkey-server on PATH: scripts/need redis-server installs one, or name one with -redis")
}

// Start starts a program, with the arguments for a free port, and returns once
// ask, which asks the server at an address for its process id, gets the right one.
func Start(ctx context.Context, bin string, args func(port string) []string, ask func(ctx context.Context, addr string) (pid string, err error)) (*Server, error) {
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, bin, args, ask)
		if err == nil {
			return s, nil
		}
		if attempt == 3 || ctx.Err() != nil { // else somebody may have taken the port
			return nil, err
		}
	}
}

func start(ctx context.Context, bin string, args func(port string) []string, ask func(context.Context, string) (string, error)) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	s := &Server{addr: net.JoinHostPort("127.0.0.1", port), ended: make(chan struct{})}
	s.cmd = exec.Command(bin, args(port)...)
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
	if err := s.await(ctx, ask); err != nil {
		s.Kill()
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
func (s *Server) await(ctx context.Context, ask func(context.Context, string) (string, error)) error {
	for range 500 {
		if pid, err := ask(ctx, s.addr); err == nil && pid == strconv.Itoa(s.PID()) {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended")
		default:
		}
		if err := Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("no answer in 5s")
}

// Addr is the host:port at which the server answers.
func (s *Server) Addr() string { return s.addr }

// PID is the server's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the server, and returns when it has ended.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // an error says that it has ended already
	<-s.ended
}
