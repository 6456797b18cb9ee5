package redistest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dueq-io/dueq/internal/child"
)

var errNoMain = errors.New("redistest: TestMain has to call redistest.Main")

// shared is the server behind the "redis" subtests of [Each]. It starts when the
// first of them asks for it: a test binary that runs none, such as a worker
// process that a test starts of its own binary, does without.
var shared sharedServer

type sharedServer struct {
	mu     sync.Mutex
	main   bool // [Main] runs the tests, and stops the server
	dir    string
	server *child.Server
	err    error // why there is none
}

// Main runs the tests of a package that uses [Each], on behalf of its TestMain: it
// runs them, stops the real server that they shared, and then fails the run if
// any goroutine is left over. It does not return.
func Main(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	shared.open()
	code := m.Run()
	if err := shared.close(); err != nil {
		return fail(err)
	}
	if code == 0 {
		err := goleak.Find()
		// The client's own dialling goroutine lives a second longer than the client.
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
			err = goleak.Find()
		}
		if err != nil {
			return fail(err)
		}
	}
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "redistest:", err)
	return 1
}

func (s *sharedServer) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = true
}

// addr starts the server unless it runs.
func (s *sharedServer) addr() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.main {
		return "", errNoMain
	}
	if s.server == nil && s.err == nil {
		s.start()
	}
	if s.err != nil {
		return "", s.err
	}
	return s.server.Addr(), nil
}

func (s *sharedServer) start() {
	if s.dir, s.err = os.MkdirTemp("", "redistest-"); s.err == nil {
		s.server, s.err = startIn(s.dir, nil)
	}
}

// close stops the server.
func (s *sharedServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = false
	if s.server != nil {
		s.server.Stop(syscall.SIGKILL)
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
