package redistest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
)

// A test binary that is killed takes its servers with it.
func TestServerDiesWithTestBinary(t *testing.T) {
	const role = "REDISTEST_HOLD_SERVER"
	if os.Getenv(role) != "" {
		fmt.Fprintln(os.Stdout, "server at", redistest.Start(t).Addr())
		select {}
	}
	t.Parallel()
	redistest.Start(t) // skips without a server

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerDiesWithTestBinary$")
	child.Env = append(os.Environ(), role+"=1", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	addr := ""
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), "server at ")
	}
	if !accepts(addr) {
		t.Errorf("no server at %q while its test binary runs", addr)
	}
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // killed
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for accepts(addr) {
		select {
		case <-ctx.Done():
			t.Fatalf("the server at %s outlives its test binary", addr)
		case <-tick.C:
		}
	}
}
