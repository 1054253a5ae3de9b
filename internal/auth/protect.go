package auth

import "net/http"

// policy allows a page only resources that this server sends as files: no inline scripts or
// styles, no frames, no other hosts.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	// Content that is the same for all clients may be cached: its handler sets another value.
	"Cache-Control": "no-store",
}

// Protect sets security headers on every response, and refuses requests that change
// something and come from pages of other sites. refuse handles those requests. nil: they
// fail with a plain 403.
func Protect(next, refuse http.Handler) http.Handler {
	csrf := http.NewCrossOriginProtection()
	if refuse != nil {
		csrf.SetDenyHandler(refuse)
	}
	guarded := csrf.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if r.TLS != nil {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		guarded.ServeHTTP(w, r)
	})
}
