package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// PanicError is the panic of a user's function, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// Call runs fn and turns a panic into a *PanicError.
func Call(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// CallApart is Call on a separate goroutine, which fn may end by runtime.Goexit. It
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

// AbandonedError says that a function did not return although its context had
// ended. It may still be running.
type AbandonedError struct {
	// Cause is why the context ended.
	Cause error
}

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("did not return after its context ended (%v)", e.Cause)
}

// Unwrap returns why the context ended.
func (e *AbandonedError) Unwrap() error { return e.Cause }

// errGone is the error of a function that ended its goroutine, as FailNow of
// package testing does.
var errGone = errors.New("ended its goroutine")

// Limits bound the call of a user's function.
type Limits struct {
	// Timeout is when its context ends.
	Timeout time.Duration
	// Patience is how long it may take to return after its context ended.
	Patience time.Duration
}

// Call runs fn on this goroutine, under the claim's context, and then with its
// error. If fn does not return in time, then is called meanwhile with an
// *AbandonedError, from another goroutine. then is called once; what fn wrote may be
// read in it unless it has an error. A claim has one call at a time.
func (c *Claim) Call(ctx context.Context, l Limits, fn func(context.Context) error, then func(error)) {
	clock := c.worker.options.Clock
	call := &call{callContext: callContext{Context: ctx, deadline: clock.Now().Add(l.Timeout)}, claim: c, patience: l.Patience, then: then}
	timer := time.AfterFunc(l.Timeout, func() { call.stop(context.DeadlineExceeded) })
	c.call.Store(call)
	if err := ctx.Err(); err != nil {
		call.stop(err)
	}
	err := errGone
	defer func() { // also when fn ends its goroutine
		timer.Stop()
		call.settle(err)
	}()
	err = Call(func() error { return fn(call) })
}

// call is a function of a user's that is running.
type call struct {
	callContext
	claim    *Claim
	patience time.Duration
	then     func(error)
	settled  atomic.Bool
	returned chan struct{} // for the watcher, once there is one
}

// settle goes on with an error, unless somebody has.
func (c *call) settle(err error) {
	if !c.settled.CompareAndSwap(false, true) {
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

// stop ends the context and leaves the function behind if it does not return then.
func (c *call) stop(err error) {
	c.mu.Lock()
	stopped := c.returned != nil || c.settled.Load()
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
		c.settle(&AbandonedError{Cause: cause})
	}
}
