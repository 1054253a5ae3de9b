//go:build !unix

package bench

import "time"

// processorTime returns 0: processor time is not measured on this system.
func processorTime() time.Duration { return 0 }
