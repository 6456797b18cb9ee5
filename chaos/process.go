package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child that dies with this program.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when it has ended
	err   error         // how, once done is closed
}

// startProcess runs a program, its output going to out.
func startProcess(out io.Writer, bin string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(bin, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = childAttributes()
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	started := make(chan error)
	go func() {
		defer close(p.done)
		// To the kernel, the parent whose death ends the child is the thread that
		// started it: this goroutine keeps that thread for as long as the child runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	return p, nil
}

// signal sends a signal; a process that has ended already takes none.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// wait waits until the process has ended, and reports whether it did in time.
func (p *process) wait(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// failed is how the process has ended by itself, or nil if that was as it should
// be, or by a signal.
func (p *process) failed() error {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return nil
		}
	}
	return p.err
}
