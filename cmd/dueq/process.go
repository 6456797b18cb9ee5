package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// inGroup makes the command the head of a process group, which gets SIGTERM when
// the command's context ends; kill ends what is left of the group.
func inGroup(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing is left
		}
	}
}

// catchBrokenPipe makes writing to a closed stdout fail, instead of ending the
// process, until stop is called.
func catchBrokenPipe() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE) // ignoring it would be inherited by commands
	return func() { signal.Stop(signals) }
}
