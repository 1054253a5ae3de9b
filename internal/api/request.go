package api

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
)

// request is what the handlers know of a request beside its input.
type request struct {
	id        string
	method    string
	url       url.URL
	route     string // the id of its route, once known
	status    int    // of its success
	principal Principal
	http      *http.Request
	failure   *Failure

	// For the audit log: from where and how the request came, why, and its path.
	address, via, reason string
	path                 func(name string) string
}

// Failure is the error behind the answer to a request that is sent and answered within
// one process: the answer tells nothing of some errors of the server.
type Failure struct{ err atomic.Pointer[error] }

// Err returns the error, or nil.
func (f *Failure) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

type failureKey struct{}

// WithFailure returns a context for a request whose error of the server goes to f too.
func WithFailure(ctx context.Context, f *Failure) context.Context {
	return context.WithValue(ctx, failureKey{}, f)
}

// failed keeps the error behind the answer for the sender, if that is in this process.
func (q *request) failed(err error) {
	if q.failure != nil {
		q.failure.err.Store(&err)
	}
}

type requestKey struct{}

// requestOf returns the request that is being answered.
func requestOf(ctx context.Context) *request {
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		return req
	}
	return &request{}
}
