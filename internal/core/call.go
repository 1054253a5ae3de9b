package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// PanicError is the error for a panic of a user's function.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Call runs fn and converts a panic into a *PanicError.
func Call(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// CallApart is Call on a separate goroutine, so that fn may call runtime.Goexit. It
// waits for fn.
func CallApart(fn func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { result <- err }()
		err = Call(fn)
	}()
	return <-result
}

// AbandonedError reports that a function did not return after its context was
// cancelled. It may still be running.
type AbandonedError struct {
	// Cause is the reason why the context was cancelled.
	Cause error
}

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("did not return after its context was cancelled (%v)", e.Cause)
}

// Unwrap returns the reason why the context was cancelled.
func (e *AbandonedError) Unwrap() error { return e.Cause }

// errGone is the error of a function that called runtime.Goexit, as FailNow of package
// testing does.
var errGone = errors.New("called runtime.Goexit")

// Limits are the time limits for the call of a user's function.
type Limits struct {
	// Timeout is the time after which its context is cancelled.
	Timeout time.Duration
	// Patience is the time after which a function that does not return is abandoned,
	// counted from the cancellation of its context.
	Patience time.Duration
}

// Call runs fn on this goroutine, under the claim's context, and then calls then with
// its error. If fn does not return in time, another goroutine calls then with an
// *AbandonedError while fn is still running. then is called once. If its error is nil,
// it may read what fn wrote. A claim has one call at a time.
func (c *Claim) Call(ctx context.Context, l Limits, fn func(context.Context) error, then func(error)) {
	clock := c.worker.options.Clock
	call := &call{callContext: callContext{Context: ctx, deadline: clock.Now().Add(l.Timeout)}, claim: c, patience: l.Patience, then: then}
	timer := time.AfterFunc(l.Timeout, func() { call.stop(context.DeadlineExceeded) })
	c.call.Store(call)
	if err := ctx.Err(); err != nil {
		call.stop(err)
	}
	err := errGone
	defer func() { // also runs if fn calls runtime.Goexit
		timer.Stop()
		call.finish(err)
	}()
	err = Call(func() error { return fn(call) })
}

// call is a running call of a user's function.
type call struct {
	callContext
	claim    *Claim
	patience time.Duration
	then     func(error)
	finished atomic.Bool
	returned chan struct{} // created for the watcher, closed by finish
}

// finish calls then with an error, unless then was called before.
func (c *call) finish(err error) {
	if !c.finished.CompareAndSwap(false, true) {
		return
	}
	c.claim.call.CompareAndSwap(c, nil)
	c.end(context.Canceled)
	c.mu.Lock()
	if c.returned != nil {
		close(c.returned)
	}
	c.mu.Unlock()
	c.then(err)
}

// stop cancels the context and abandons the function if it does not return within
// patience.
func (c *call) stop(err error) {
	c.mu.Lock()
	stopped := c.returned != nil || c.finished.Load()
	if !stopped {
		c.returned = make(chan struct{})
	}
	c.mu.Unlock()
	if !stopped {
		c.end(err)
		go c.watch()
	}
}

func (c *call) watch() {
	cause := context.Cause(c)
	timer := c.claim.worker.options.Clock.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-c.returned:
	case <-timer.C():
		c.finish(&AbandonedError{Cause: cause})
	}
}
