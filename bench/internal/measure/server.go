// Package measure starts servers, gives them work, meters what they and this
// process use up meanwhile, and prints the figures.
package measure

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dueq-io/dueq/internal/child"
)

// Server is a server process of our own, on a loopback port.
type Server struct {
	*child.Server
	dir string // what it writes, its output at least
}

// StartRedis starts a redis-server or a valkey-server, which keeps nothing on disk,
// and returns once it answers.
func StartRedis(ctx context.Context) (*Server, error) {
	return start(ctx, func(dir string) (*child.Server, error) { return child.Redis(dir) })
}

// Start starts a program, with the arguments for a free port, and returns once
// ask, which asks the server at an address for its process id, gets the right one.
func Start(ctx context.Context, bin string, args func(port string) []string, ask func(addr string) (pid int, err error)) (*Server, error) {
	return start(ctx, func(dir string) (*child.Server, error) {
		return &child.Server{Bin: bin, Args: args, Ask: ask, Output: filepath.Join(dir, "server.log")}, nil
	})
}

func start(ctx context.Context, in func(dir string) (*child.Server, error)) (*Server, error) {
	dir, err := os.MkdirTemp("", "dueq-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if s.Server, err = in(dir); err == nil {
		s.Apart = true // at Ctrl-C we end it when we have tidied up
		err = s.Start(ctx)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// PID is the server's process id.
func (s *Server) PID() int { return s.Process().PID() }

// Kill ends the server, and returns when it has ended.
func (s *Server) Kill() {
	s.Stop(syscall.SIGKILL)
	_ = os.RemoveAll(s.dir)
}
