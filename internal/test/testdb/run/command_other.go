//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func separate(*exec.Cmd) {}

func forward(cmd *exec.Cmd, s os.Signal) { _ = cmd.Process.Signal(s) }
