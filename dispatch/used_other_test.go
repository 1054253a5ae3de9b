//go:build !unix

package dispatch_test

import (
	"testing"
	"time"
)

// used is not measured here.
func used(b *testing.B) time.Duration {
	b.Skip("the processor time of a process is measured on Unix only")
	return 0
}
