package api

import (
	"context"
	"net/http"
	"net/url"
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

	// For the audit log: from where and how the request came, why, and its path.
	address, via, reason string
	path                 func(name string) string
}

type requestKey struct{}

// requestOf returns the request that is being answered.
func requestOf(ctx context.Context) *request {
	if req, ok := ctx.Value(requestKey{}).(*request); ok {
		return req
	}
	return &request{}
}
