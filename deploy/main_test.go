package deploy_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool runs promtool, which must be content, and must be there where a
// redis-server must.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no promtool")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}
