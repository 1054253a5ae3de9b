package testdb

import (
	"errors"
	"os"
	"syscall"
)

// dieWithParent makes the kernel signal the program when the thread that started it ends,
// even if this process is killed.
func dieWithParent(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }

func ownGroup(a *syscall.SysProcAttr) { a.Setpgid = true }

func isGone(err error) bool {
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}
