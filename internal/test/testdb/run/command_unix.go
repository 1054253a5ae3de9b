//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// separate puts the command in its own process group, so that it receives an interrupt from
// a terminal only once, through this process.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// forward sends the signal to the command and all processes that it started, as a terminal
// would.
func forward(cmd *exec.Cmd, s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-cmd.Process.Pid, number) // it may have ended
	}
}
