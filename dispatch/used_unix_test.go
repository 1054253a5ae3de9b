//go:build unix

package dispatch_test

import (
	"syscall"
	"testing"
	"time"
)

// used returns the processor time that this process has used.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	noError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
