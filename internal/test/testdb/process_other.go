//go:build !linux

package testdb

import (
	"errors"
	"os"
	"syscall"
)

// dieWithParent does nothing: there is no portable way. If the test process is killed on
// this system, its server keeps running until a user ends it.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

func ownGroup(*syscall.SysProcAttr) {}

func isGone(err error) bool { return errors.Is(err, os.ErrProcessDone) }
