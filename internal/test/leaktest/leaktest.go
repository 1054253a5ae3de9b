// Package leaktest finds goroutines that tests have left running.
package leaktest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	// patience is the time within which goroutines must end.
	patience = 2 * time.Second
	// interval is the time between two checks.
	interval = 10 * time.Millisecond
)

// Main runs the tests of a package and exits. If all passed it also checks that they
// left no goroutine running.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, "leaktest:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find returns an error with the stacks of the other goroutines that do not end within two
// seconds. Goroutines of the runtime and of package testing are ignored.
func Find() error {
	return find(patience)
}

func find(patience time.Duration) error {
	for waited := time.Duration(0); ; waited += interval {
		left := others()
		if len(left) == 0 {
			return nil
		}
		if waited >= patience {
			return fmt.Errorf("the tests left goroutines running:\n%s", strings.Join(left, "\n\n"))
		}
		time.Sleep(interval)
	}
}

// others returns the stacks of all goroutines that are not ignored, except the caller's.
func others() (left []string) {
	for _, stack := range strings.Split(strings.TrimSpace(all()), "\n\n")[1:] { // the first one is the caller's
		if !expected(stack) {
			left = append(left, stack)
		}
	}
	return left
}

// all returns the stacks of all goroutines, starting with the caller's.
func all() string {
	for size := 1 << 18; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return string(buffer[:n])
		}
	}
}

// expected reports whether a goroutine belongs to the runtime or to package testing.
func expected(stack string) bool {
	header, frames, _ := strings.Cut(stack, "\n")
	_, state, _ := strings.Cut(header, "[")
	first, _, _ := strings.Cut(frames, "\n")
	function := first
	if i := strings.LastIndex(first, "("); i > 0 {
		function = first[:i]
	}
	switch function {
	case "testing.RunTests", "testing.(*T).Run", "testing.(*T).Parallel", "testing.runFuzzing", "testing.runFuzzTests":
		return strings.HasPrefix(state, "chan receive") // it waits for tests
	case "os/signal.signal_recv", "os/signal.loop":
		return true // package os/signal starts it once
	}
	if strings.HasPrefix(state, "syscall") && strings.Contains(frames, "runtime.goexit") {
		return true // a thread of cgo
	}
	if strings.HasPrefix(function, "gorm.io/gorm/internal/lru.") {
		return true // GORM's cache of prepared statements cannot be stopped
	}
	return strings.Contains(frames, "runtime.ensureSigM(") || strings.Contains(frames, "runtime.ReadTrace(")
}
