package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"github.com/dueq-io/dueq/internal/child"
)

// process is a worker's.
type process struct {
	*child.Process
	stdin io.WriteCloser
}

// startProcess runs a program, its output going to out. A terminal's interrupts do
// not reach it.
func startProcess(out io.Writer, bin string, args ...string) (*process, error) {
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	p, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	return &process{p, stdin}, nil
}

// failed is how the process has ended by itself, or nil if that was as it should
// be, or by a signal.
func (p *process) failed() error {
	var exit *exec.ExitError
	if errors.As(p.Err(), &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return nil
		}
	}
	return p.Err()
}
