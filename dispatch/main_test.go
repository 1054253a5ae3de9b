package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a processor without work.
type fake struct {
	name    string
	process func(ctx context.Context) (int, error)       // nil: nothing to do
	next    func(ctx context.Context) (time.Time, error) // nil: never

	mu      sync.Mutex
	runs    int
	asked   int
	arrived []func(time.Time)
}

func (f *fake) Namespace() string {
	if f.name == "" {
		return "fake"
	}
	return f.name
}

func (f *fake) Process(ctx context.Context) (int, error) {
	f.mu.Lock()
	f.runs++
	process := f.process
	f.mu.Unlock()
	if process == nil {
		return 0, nil
	}
	return process(ctx)
}

func (f *fake) NextWakeAt(ctx context.Context) (time.Time, error) {
	f.mu.Lock()
	f.asked++
	next := f.next
	f.mu.Unlock()
	if next == nil {
		return time.Time{}, nil
	}
	return next(ctx)
}

func (f *fake) Subscribe(fn func(time.Time)) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived = append(f.arrived, fn)
	place := len(f.arrived) - 1
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.arrived[place] = func(time.Time) {}
	}
}

// arrive says that work has arrived.
func (f *fake) arrive(due time.Time) {
	f.mu.Lock()
	fns := append([]func(time.Time){}, f.arrived...)
	f.mu.Unlock()
	for _, fn := range fns {
		fn(due)
	}
}

func (f *fake) counts() (runs, asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs, f.asked
}

func (f *fake) ran() int {
	runs, _ := f.counts()
	return runs
}

// become changes what the processor does.
func (f *fake) become(process func(context.Context) (int, error), next func(context.Context) (time.Time, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process, f.next = process, next
}

// at returns a next wake that is always the same.
func at(t time.Time) func(context.Context) (time.Time, error) {
	return func(context.Context) (time.Time, error) { return t, nil }
}

// complaints are the errors that OnError was given.
type complaints struct {
	mu  sync.Mutex
	all []error
}

func (c *complaints) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, err)
}

func (c *complaints) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

func (c *complaints) about(what string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.all {
		if strings.Contains(err.Error(), what) {
			n++
		}
	}
	return n
}

var errBoom = errors.New("boom")

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// pass lets time pass: virtual time, in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
