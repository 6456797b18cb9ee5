package child_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/child"
)

func TestProcess(t *testing.T) {
	t.Parallel()
	p, err := child.Start(exec.Command("cat", "/dev/zero"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Wait(0) {
		t.Error("it ended by itself")
	}
	p.Kill()
	<-p.Done()
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", p.Err())
	}
	p.Kill() // nothing
	if p, err := child.Start(exec.Command(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Errorf("no program runs as %d", p.PID())
	}
}

func TestServerEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := server(t, "echo $((1 + 1)) is wrong; exit 1", func() {})
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "2 is wrong") {
		t.Errorf("%v, without what it printed", err)
	}
}

func TestServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := server(t, "exec cat /dev/zero >/dev/null", cancel)
	if err := s.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it starts: %v", err)
	}
	if !s.Process().Wait(time.Minute) {
		t.Error("it still runs")
	}
	s.Stop(syscall.SIGTERM) // nothing
}

// A server that is down keeps its port: nobody else gets it.
func TestServerKeepsItsPort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has what it takes")
	}
	down := server(t, "exit 1", func() {})
	down.Ask = func(string) (int, error) { return down.Process().PID(), nil }
	if err := down.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	down.Stop(syscall.SIGKILL)
	_, text, err := net.SplitHostPort(down.Addr())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Reserve(port); err == nil {
		t.Errorf("others get port %d", port)
	}
	runtime.KeepAlive(down)
}

// server is a script that does not answer when asked.
func server(t *testing.T, script string, asked func()) *child.Server {
	return &child.Server{
		Bin:    "sh",
		Args:   func(port string) []string { return []string{"-c", script, port} },
		Ask:    func(string) (int, error) { asked(); return 0, errors.New("nobody") },
		Output: filepath.Join(t.TempDir(), "out"),
	}
}
