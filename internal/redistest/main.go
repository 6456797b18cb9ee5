package redistest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// shared is the server behind the "redis" subtests of [Each]. Main sets it before
// any test runs; nothing changes it while they do.
var shared = sharedServer{err: errors.New("redistest: TestMain has to call redistest.Main")}

type sharedServer struct {
	instance *instance
	err      error // why there is none
}

// Main runs the tests of a package that uses [Each], on behalf of its TestMain: it
// starts the real server that they share, runs them, stops the server, and then
// fails the run if any goroutine is left over. It does not return.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return fail(err)
	}
	shared.instance, shared.err = startInstance(dir, nil)
	code := m.Run()
	if shared.err == nil {
		shared.instance.stop(syscall.SIGKILL)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fail(err)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			return fail(err)
		}
	}
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "redistest:", err)
	return 1
}

func (s sharedServer) addr() (string, error) {
	if s.err != nil {
		return "", s.err
	}
	return s.instance.addr(), nil
}
