package api

import (
	"net"
	"net/http"
	"sync"
)

// Limits cap what one caller has open concurrently in this process. A negative number is no
// cap.
type Limits struct {
	// Streams counts open streams of server-sent events and requests that wait.
	Streams int
	// Sockets counts open WebSockets.
	Sockets int
	// Requests counts the other requests in flight.
	Requests int
}

// quota counts the open requests of callers.
type quota struct {
	mu   sync.Mutex
	open map[opened]int
}

// opened identifies a kind of request of one caller.
type opened struct{ caller, kind string }

// enter counts a request, unless the caller has reached the limit. If ok is true, the
// caller of enter must call leave.
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

// occupy counts a request for its caller. It returns a function that ends the count, or a
// problem with status 429.
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
		return nil, NewProblem(http.StatusTooManyRequests, codeRateLimited, "too many open "+o.kind).RetryAfter(1)
	}
	return leave, nil
}

// callerKey returns the key of a caller: its token, which it shares with the token's
// sessions. Programs on this host without a token are one caller. Other requests without
// credentials are one caller for each address.
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
