package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Authenticator authenticates the sender of a request, like Access.
type Authenticator interface {
	Authenticate(*http.Request) (Principal, error)
}

// Require protects a handler outside the API by the rules of the API. It passes on requests
// with the credentials of a role, and requests without credentials where Authenticate
// accepts them. It refuses requests that change something and come from pages of other
// sites.
func Require(a Authenticator, role Role, next http.Handler) http.Handler {
	return Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := a.Authenticate(r)
		var limited *LimitedError
		switch {
		case errors.As(err, &limited):
			w.Header().Set("Retry-After", fmt.Sprint(int(limited.After.Seconds())+1))
			refuse(w, http.StatusTooManyRequests, "rate_limited", err.Error())
		case errors.Is(err, ErrUnauthenticated):
			w.Header().Set("WWW-Authenticate", `Bearer realm="perdure"`)
			refuse(w, http.StatusUnauthorized, "unauthorized", err.Error())
		case err != nil: // the database did not respond, which does not concern the credential
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "unavailable", "the server is not available")
		case who.Actor != nil:
			refuse(w, http.StatusForbidden, "forbidden", "the token is for one actor")
		case who.Role < role:
			refuse(w, http.StatusForbidden, "forbidden", "the route requires the role "+role.String())
		default:
			next.ServeHTTP(w, r)
		}
	}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "forbidden", "the request comes from another site")
	}))
}

// LocalHost refuses requests for a host name that is not this host. It is for a handler
// that listens on loopback without credentials. A page of another site can make a browser
// on this host send a request to a name that resolves to loopback.
func LocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromHere(r) {
			refuse(w, http.StatusForbidden, "forbidden", "the request is not for this host")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers with a problem, as the API does.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have disconnected
		"type": "urn:perdure:problem:" + code, "title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}
