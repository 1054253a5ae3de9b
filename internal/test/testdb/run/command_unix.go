//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// separate puts the command in a process group of its own, so that it gets an
// interrupt from a terminal once, through us.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// forward sends the signal to the command and all that it started, as a
// terminal would.
func forward(cmd *exec.Cmd, s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-cmd.Process.Pid, number) // it may have ended
	}
}
