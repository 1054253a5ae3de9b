package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/perdure/perdure/internal/clock"
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

// CallWithin runs fn, a user's function that should return when ctx ends, and
// leaves it behind with an *AbandonedError if it does not within patience: one
// that hangs must not hold its slot for ever.
func CallWithin(ctx context.Context, c clock.Clock, patience time.Duration, fn func(context.Context) error) error {
	result := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { result <- err }()
		err = Call(func() error { return fn(ctx) })
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	timer := c.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C():
		return &AbandonedError{Cause: context.Cause(ctx)}
	}
}
