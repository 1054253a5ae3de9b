// Package failpoint lets tests stop the program at named places: before and after every
// important commit.
//
// In production no failpoint is set, and a Hit costs one atomic load.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Variable names the environment variable that sets a failpoint in a child
// process: "name:n" kills it, as kill -9 would, at the n-th hit of name.
const Variable = "PERDURE_FAILPOINT"

var (
	active atomic.Int32
	mu     sync.Mutex
	points = map[string]func() error{}
)

func init() {
	name, count, ok := strings.Cut(os.Getenv(Variable), ":")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return
	}
	var hits atomic.Int64
	Set(name, func() error {
		if hits.Add(1) == n {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {} // until the signal arrives
		}
		return nil
	})
}

// Set makes every Hit of name run fn. It returns a function that removes fn.
func Set(name string, fn func() error) (reset func()) {
	mu.Lock()
	defer mu.Unlock()
	if _, replaced := points[name]; !replaced {
		active.Add(1)
	}
	points[name] = fn
	return func() { unset(name) }
}

func unset(name string) {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := points[name]; ok {
		delete(points, name)
		active.Add(-1)
	}
}

// Hit runs the function that is set for name and returns its error.
func Hit(name string) error {
	if active.Load() == 0 {
		return nil
	}
	mu.Lock()
	fn := points[name]
	mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn()
}
