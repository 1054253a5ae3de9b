//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// inodeOf returns the number of a file by which /proc/locks names it.
func inodeOf(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprint(stat.Ino), true
}
