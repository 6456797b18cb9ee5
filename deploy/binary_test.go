//go:build linux

package deploy_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	run := exec.CommandContext(t.Context(), "/dueq", "version")
	run.Dir = "/"
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := run.CombinedOutput(); err != nil || len(out) == 0 {
		t.Errorf("in an empty root: %v\n%s", err, out)
	}
}

// systemd understands the unit.
func TestService(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
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
