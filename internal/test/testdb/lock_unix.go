//go:build unix

package testdb

import (
	"fmt"
	"os"
	"syscall"
)

// acquire creates and locks the file at path. The lock is released when the file is closed
// or the process ends. It fails with errSwept if another process has the lock, or has
// removed the file since.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSwept, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%w: %w, %w", errSwept, err, f.Close())
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: %w, %w", errSwept, err, f.Close())
	}
	return f, nil
}
