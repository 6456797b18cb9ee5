package redistest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is one run of a server binary.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// startProcess runs bin, its output going to out.
func startProcess(bin string, args []string, out *os.File) (*process, error) {
	p := &process{cmd: exec.Command(bin, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	dieWithParent(p.cmd)
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
			_ = p.cmd.Wait() // how it ended does not matter, only that it did
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// end sends sig and waits for the process to end. One that has not ended after
// patience is killed.
func (p *process) end(sig syscall.Signal, patience time.Duration) {
	_ = p.cmd.Process.Signal(sig) // an error says that it has ended already
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
