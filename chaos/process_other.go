//go:build !linux

package main

import "syscall"

// childAttributes keep a terminal's interrupts from a child.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
