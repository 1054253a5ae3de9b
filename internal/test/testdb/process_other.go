//go:build !linux

package testdb

import (
	"errors"
	"os"
	"syscall"
)

// dieWithParent has no portable form: elsewhere a server whose test process is
// killed, rather than ends, stays until somebody ends it.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func ownGroup(*syscall.SysProcAttr) {}

func isGone(err error) bool { return errors.Is(err, os.ErrProcessDone) }
