package api

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
)

// request has what the handlers know of a request in addition to its input.
type request struct {
	id        string
	method    string
	url       url.URL
	route     string // the id of its route, once known
	status    int    // of a successful response
	principal Principal
	http      *http.Request
	failure   *Failure

	// For the audit log: the origin of the request, its reason and its path.
	address, via, reason string
	path                 func(name string) string
}

// Failure is the error behind the response to a request that is sent within the same
// process. The response itself hides some errors of the server.
type Failure struct{ err atomic.Pointer[error] }

// Err returns the error, or nil.
func (f *Failure) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

type failureKey struct{}

// WithFailure returns a context for a request whose server error is also stored in f.
func WithFailure(ctx context.Context, f *Failure) context.Context {
	return context.WithValue(ctx, failureKey{}, f)
}

// failed stores the error behind the response for a sender in this process.
func (q *request) failed(err error) {
	if q.failure != nil {
		q.failure.err.Store(&err)
	}
}

type requestKey struct{}

// requestOf returns the current request.
func requestOf(ctx context.Context) *request {
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		return req
	}
	return &request{}
}
