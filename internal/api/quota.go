package api

import (
	"net"
	"net/http"
	"sync"
)

// Limits cap what one caller has open at the same time in this process. A negative
// number is no cap.
type Limits struct {
	// Streams counts open streams of server-sent events and requests that wait.
	Streams int
	// Sockets counts open WebSockets.
	Sockets int
	// Requests counts the other requests that are being answered.
	Requests int
}

// quota counts what callers have open.
type quota struct {
	mu   sync.Mutex
	open map[opened]int
}

// opened is a kind of request of one caller.
type opened struct{ caller, kind string }

// enter counts a request, unless the caller has as many as the limit. Unless it fails,
// the caller must call leave.
func (q *quota) enter(o opened, limit int) (leave func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit >= 0 && q.open[o] >= limit {
		return nil, false
	}
	if q.open == nil {
		q.open = map[opened]int{}
	}
	q.open[o]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.open[o]--; q.open[o] == 0 {
			delete(q.open, o)
		}
	}, true
}

// occupy counts a request for its caller and returns what ends the count, or a problem
// with status 429.
func (a *API) occupy(r *http.Request, p Principal, route Route) (func(), error) {
	o, limit := opened{callerKey(r, p), "requests"}, a.config.Limits.Requests
	switch {
	case route.ID == "open-socket":
		o.kind, limit = "sockets", a.config.Limits.Sockets
	case route.Stream:
		o.kind, limit = "streams", a.config.Limits.Streams
	}
	leave, ok := a.quota.enter(o, limit)
	if !ok {
		return nil, NewProblem(http.StatusTooManyRequests, codeRateLimited, "the caller has too many open "+o.kind).RetryAfter(1)
	}
	return leave, nil
}

// callerKey tells callers apart: by their token, which is also that of its sessions.
// Programs on this machine without a token are one caller, and other requests without
// credentials are one for each address.
func callerKey(r *http.Request, p Principal) string {
	if p.Name != "" {
		return p.Name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address:" + host
}
