package main

import "syscall"

// childAttributes keep a terminal's interrupts from a child, and have the kernel
// kill it when the thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
