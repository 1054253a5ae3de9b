package auth

import (
	"fmt"
	"net/http"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/store"
)

// Login starts a session for a browser whose user has an API token, and returns the cookie
// to set. It fails with the errors of Authenticate.
func (a *Access) Login(r *http.Request, token string) (*http.Cookie, Principal, error) {
	if kindOf(token) != store.APIToken {
		token = "" // counted as a failure like any other
	}
	t, err := a.verify(r, token)
	if err != nil {
		return nil, Principal{}, err
	}
	who, err := principal(t)
	if err != nil {
		return nil, Principal{}, err
	}
	audit.Of(r.Context()).By(who.Name, who.Label, who.Role.String())
	session := store.Token{Kind: store.SessionToken, Name: t.Name, Role: t.Role, Parent: &t.ID}
	issued, err := a.issue(r.Context(), session, sessionPrefix, &a.options.SessionIdle, a.options.SessionMax)
	if err != nil {
		return nil, Principal{}, err
	}
	return a.cookie(r, issued.Secret, int(a.options.SessionMax.Seconds())), who, nil
}

// Logout ends the session of a request, if it has one, and returns the cookie that removes
// the browser's cookie.
func (a *Access) Logout(r *http.Request) (*http.Cookie, error) {
	removed := a.cookie(r, "", -1)
	cookie, err := r.Cookie(CookieName)
	if err != nil || !wellFormed(cookie.Value) {
		return removed, nil
	}
	hash := hashOf(cookie.Value)
	if err := a.change(r.Context(), a.rt.Store.ForgetSession(hash[:])); err != nil {
		return nil, fmt.Errorf("end session: %w", err)
	}
	return removed, nil
}

// cookie returns the cookie of a session. Scripts cannot read it, and other sites cannot
// make a browser send it except by a link.
func (a *Access) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: CookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: a.options.SecureCookies || r.TLS != nil,
	}
}
