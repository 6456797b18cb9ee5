//go:build linux

package deploy_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What the Dockerfile builds needs no file at all, and no rights: it runs as a
// nobody in an empty root.
func TestStaticBinary(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`).FindStringSubmatch(read(t, "Dockerfile"))
	if command == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	root := t.TempDir()
	binary := filepath.Join(root, "dueq")
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command[1], "-o /dueq", "-o "+binary, 1))
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary asks for a dynamic linker: %v", p.Type)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root")
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	serveInEmptyRoot(t, root)
}

// serveInEmptyRoot runs the image's command until it answers, and ends it as an
// orchestrator does.
func serveInEmptyRoot(t *testing.T, root string) {
	t.Helper()
	var args []string
	command := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(read(t, "Dockerfile"))
	if command == nil || json.Unmarshal([]byte(command[1]), &args) != nil || !slices.Contains(args, "0.0.0.0:7700") {
		t.Fatalf("the Dockerfile runs %q", command)
	}
	args[slices.Index(args, "0.0.0.0:7700")] = "0.0.0.0:0"
	serve := exec.CommandContext(t.Context(), "/dueq", args...)
	serve.Dir = "/"
	serve.Env = []string{"DUEQ_TOKEN=0123456789abcdef"}
	serve.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	log, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	port := ""
	var text strings.Builder
	for lines := bufio.NewScanner(log); port == "" && lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if m := regexp.MustCompile(`"addr":"[^"]*:(\d+)"`).FindStringSubmatch(lines.Text()); m != nil {
			port = m[1]
		}
	}
	if port == "" {
		t.Fatalf("it does not serve: %v\n%s", serve.Wait(), text.String())
	}
	go func() { _, _ = io.Copy(io.Discard, log) }() // until the process ends
	response, err := http.Get("http://127.0.0.1:" + port + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("/readyz answers %s", response.Status)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// systemd understands the unit.
func TestService(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" && runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	unit := filepath.Join(t.TempDir(), "dueq.service")
	text := strings.ReplaceAll(read(t, "dueq.service"), "/usr/local/bin/dueq", "/bin/true") // a command that is there
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), unit) {
		t.Errorf("%v\n%s", err, out)
	}
}
