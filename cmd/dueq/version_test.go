package main_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := run(t.Context(), nil, "version")
	if code != 0 || !strings.HasPrefix(stdout, "dueq ") || !strings.Contains(stdout, runtime.Version()) {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	if strings.Contains(stdout, "  ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("it prints %q", stdout)
	}
	if code, flag, _ := run(t.Context(), nil, "--version"); code != 0 || flag != stdout {
		t.Errorf("--version: exit code %d, %q, and version prints %q", code, flag, stdout)
	}
	var b struct{ Version, Go, Platform string }
	code, stdout, _ = run(t.Context(), nil, "version", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &b); code != 0 || err != nil || b.Version == "" || b.Go != runtime.Version() {
		t.Errorf("exit code %d, %v, %q", code, err, stdout)
	}
	code, _, stderr := run(t.Context(), nil, "version", "-o", "xml")
	if code != 2 || !strings.Contains(stderr, `"xml" for "-o, --output"`) {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, _ := run(t.Context(), nil, "completion", shell)
		if code != 0 || !strings.Contains(stdout, "dueq") {
			t.Errorf("%s: exit code %d, %.80q", shell, code, stdout)
		}
	}
}
