package core

import (
	"context"
	"errors"
	"sync"

	"github.com/perdure/perdure/internal/sqldb"
)

// Additions are functions that a handler has added to the transaction that records its
// success. They take the Tx of package perdure.
type Additions struct {
	mu     sync.Mutex
	all    []func(tx any) error
	closed bool
}

type additionsKey struct{}

// WithAdditions returns a context for a handler that can add functions.
func WithAdditions(ctx context.Context) (context.Context, *Additions) {
	a := &Additions{}
	return context.WithValue(ctx, additionsKey{}, a), a
}

// AdditionsOf returns the additions of the handler to which the context belongs, or
// nil.
func AdditionsOf(ctx context.Context) *Additions {
	a, _ := ctx.Value(additionsKey{}).(*Additions)
	return a
}

// Add adds a function. It returns false if the handler has returned.
func (a *Additions) Add(fn func(tx any) error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.all = append(a.all, fn)
	return true
}

// Close returns the functions that were added. After Close, Add returns false.
func (a *Additions) Close() []func(tx any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.all
}

// AdditionError is the error of a function that ran in the transaction of an outcome.
// The outcome was not committed: the attempt has failed.
type AdditionError struct{ Err error }

func (e *AdditionError) Error() string { return e.Err.Error() }

// Unwrap returns the function's error.
func (e *AdditionError) Unwrap() error { return e.Err }

// Addition returns the reason why an outcome with additions makes its attempt fail: a
// function failed, or the database rejected its writes. It returns nil if the outcome
// was committed, if the commit is uncertain, and if the database was unavailable.
func Addition(err error) error {
	var failed *AdditionError
	switch {
	case err == nil, sqldb.IsTransient(err), sqldb.IsUnavailable(err), sqldb.IsUncertain(err):
		return nil
	case errors.As(err, &failed):
		return failed.Err
	case sqldb.Refused(err):
		return err
	}
	return nil
}

// RunAdditions runs functions in a transaction, in order. An error is an
// *AdditionError.
func RunAdditions[T any](tx T, all []func(tx T) error) error {
	for _, fn := range all {
		if err := CallApart(func() error { return fn(tx) }); err != nil {
			return &AdditionError{err}
		}
	}
	return nil
}
