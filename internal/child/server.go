package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
	portAttempts = 10
)

var (
	errEnded    = errors.New("it ended at once")
	errNoAnswer = fmt.Errorf("no answer in %v", startTimeout)
)

// Server is a server program on a free port of the loopback interface, running or
// not. Its fields are read when it starts.
type Server struct {
	Bin  string
	Args func(port string) []string
	// Ask asks the server that answers at addr for its process id.
	Ask func(addr string) (pid int, err error)
	// Output is the file to which what the program prints is added.
	Output string
	// Apart gives it a process group of its own, so that a terminal's Ctrl-C does not
	// reach it.
	Apart bool

	port int       // 0: none yet
	hold io.Closer // keeps the port from other Servers, for as long as this one is in use
	proc *Process
}

// Start starts the server and returns once it answers. It keeps its port when it
// starts again.
func (s *Server) Start(ctx context.Context) error {
	if s.port != 0 {
		return s.start(ctx)
	}
	var err error
	for range portAttempts {
		if s.port, s.hold, err = freePort(); err != nil {
			return err
		}
		if err = s.start(ctx); !errors.Is(err, errEnded) { // else another program may have taken the port
			break
		}
		_ = s.hold.Close()
	}
	return err
}

func (s *Server) start(ctx context.Context) error {
	out, err := os.OpenFile(s.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("child: open output: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own copy
	cmd := exec.Command(s.Bin, s.Args(strconv.Itoa(s.port))...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: s.Apart}
	if s.proc, err = Start(cmd); err != nil {
		return fmt.Errorf("child: start %s: %w", s.Bin, err)
	}
	if err := s.await(ctx); err != nil {
		s.proc.Kill()
		return fmt.Errorf("child: start %q: %w\n%s", cmd.Args, err, s.outputTail())
	}
	return nil
}

// await returns nil once the server answers, and is the process we started; or
// why it does not.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNoAnswer)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if pid, err := s.Ask(s.Addr()); err == nil && pid == s.proc.PID() {
			return nil
		}
		select {
		case <-s.proc.Done():
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Addr is the host:port at which the server answers.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Process is the latest run of the server; nil before the first.
func (s *Server) Process() *Process { return s.proc }

// Stop sends the server a signal that ends it, and returns when it has ended: it
// is killed if that takes 20 seconds. A server that does not run stays as it is.
func (s *Server) Stop(sig syscall.Signal) {
	if s.proc == nil {
		return
	}
	s.proc.Signal(sig)
	if !s.proc.Wait(stopTimeout) {
		s.proc.Kill()
	}
}

// outputTail is the end of what the server printed.
func (s *Server) outputTail() []byte {
	text, err := os.ReadFile(s.Output)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-2000):])
}

// freePort is a port of the loopback interface that nobody listened on a moment
// ago, and that hold keeps from all who call freePort. It lies below the ports that
// systems give to outgoing connections (from 32768 on), so that it stays free while
// a server is down, and so does port+10000, a Redis Cluster's bus.
func freePort() (port int, hold io.Closer, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(10_000)
		if hold, err = reserve(port); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, hold, l.Close()
		}
		_ = hold.Close()
	}
	return 0, nil, fmt.Errorf("child: find a free port: %w", err)
}
