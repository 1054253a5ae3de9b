package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
)

const unknown = "perdure_sk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func limited(err error) bool {
	var l *auth.LimitedError
	return errors.As(err, &l) && l.After > 0
}

func from(r *http.Request, address string) *http.Request { r.RemoteAddr = address; return r }

func TestAddressThatFailsTooOftenHasToWait(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 3, FailureEvery: time.Second})
	fresh := f.create(t, auth.Viewer, 0)
	for range 3 {
		f.refuses(t, "within the limit", bearer(t, unknown))
	}
	for what, secret := range map[string]string{"unknown": unknown, "malformed": "x", "good but new": fresh.Secret} {
		if _, err := f.Authenticate(bearer(t, secret)); !limited(err) {
			t.Errorf("%s: %v, want it limited", what, err)
		}
	}
	if _, _, err := f.Login(with(t), unknown); !limited(err) {
		t.Errorf("login: %v, want it limited", err)
	}
	// Headers that anyone can send do not help.
	if _, err := f.Authenticate(with(t, "Authorization", "Bearer "+unknown, "X-Forwarded-For", "192.0.2.1")); !limited(err) {
		t.Errorf("%v, want it limited", err)
	}
	_, err := f.Authenticate(from(bearer(t, fresh.Secret), "203.0.113.9:1"))
	enginetest.NoError(t, err) // others are not concerned
	f.clock.Advance(time.Second)
	f.refuses(t, "after a while", bearer(t, unknown))
	if _, err := f.Authenticate(bearer(t, unknown)); !limited(err) {
		t.Errorf("%v, want it limited again", err)
	}
}

func TestNobodyIsLockedOutByOthersAtTheirAddress(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 3})
	issued := f.create(t, auth.Viewer, 0)
	_, err := f.Authenticate(bearer(t, issued.Secret))
	enginetest.NoError(t, err)
	for range 10 {
		_, _ = f.Authenticate(bearer(t, unknown))
	}
	_, err = f.Authenticate(bearer(t, issued.Secret))
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.Revoke(t.Context(), issued.ID)) // it is looked up all the same
	if _, err = f.Authenticate(bearer(t, issued.Secret)); err == nil {
		t.Error("a revoked token was accepted")
	}
}

func TestOneNetworkOfIPv6IsOneAddress(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 3})
	for i := range 4 {
		_, err := f.Authenticate(from(bearer(t, unknown), fmt.Sprintf("[2001:db8:1:2::%d]:99", i)))
		if limited(err) != (i == 3) {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	f.refuses(t, "another network", from(bearer(t, unknown), "[2001:db8:1:3::1]:99"))
	f.refuses(t, "no address", from(bearer(t, unknown), "@"))
}

func TestMemoryOfAddressesIsBounded(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 1})
	for i := range 30_000 {
		_, _ = f.Authenticate(from(bearer(t, "x"), fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)))
	}
	if n := f.Tracked(); n > 10_000 {
		t.Errorf("%d addresses are remembered", n)
	}
}
