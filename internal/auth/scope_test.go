package auth_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
)

var scope = auth.ActorScope{Type: "cart", ID: "c-1", CallerKind: "client", CallerID: "alice"}

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func (Conformance) ActorTokenOpensOneActorForOneCaller(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	issued, err := f.CreateActor(t.Context(), scope, time.Hour)
	enginetest.NoError(t, err)
	who, err := f.Authenticate(bearer(t, issued.Secret))
	if err != nil || who.Role != auth.Anyone || who.Actor == nil || *who.Actor != scope {
		t.Fatalf("%+v, %v", who, err)
	}
	f.clock.Advance(time.Hour)
	f.refuses(t, "expired", bearer(t, issued.Secret))
	issued, err = f.CreateActor(t.Context(), scope, 0)
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.Revoke(t.Context(), issued.ID))
	f.refuses(t, "revoked", bearer(t, issued.Secret))
}

func TestNobodyOutsideIsTheSystem(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, nil)
	for _, s := range []auth.ActorScope{
		{Type: "cart", ID: "c-1", CallerKind: "system", CallerID: "x"},
		{Type: "cart", ID: "c-1", CallerKind: "", CallerID: "x"},
		{Type: "cart", ID: "c-1", CallerKind: "Client", CallerID: "x"},
		{Type: "cart", ID: "c-1", CallerKind: "client"},
		{Type: "", ID: "c-1", CallerKind: "client", CallerID: "x"},
		{Type: "cart", ID: "", CallerKind: "client", CallerID: "x"},
		{Type: "cart", ID: "a\x00b", CallerKind: "client", CallerID: "x"},
		{Type: "cart", ID: strings.Repeat("x", 1000), CallerKind: "client", CallerID: "x"},
	} {
		_, err := f.CreateActor(t.Context(), s, 0)
		enginetest.As[*fault.Invalid](t, err)
	}
}

func (Conformance) SessionHasTheRoleOfItsToken(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	issued := f.create(t, auth.Operator, 0)
	cookie, who, err := f.Login(with(t), issued.Secret)
	if err != nil || who.Role != auth.Operator {
		t.Fatalf("%+v, %v", who, err)
	}
	again, err := f.Authenticate(with(t, "Cookie", cookie.String()))
	if err != nil || again != who {
		t.Errorf("%+v, %v; want %+v", again, err, who)
	}
	removed, err := f.Logout(with(t, "Cookie", cookie.String()))
	if err != nil || removed.MaxAge >= 0 || removed.Value != "" {
		t.Errorf("%v, %v", removed, err)
	}
	f.refuses(t, "ended session", with(t, "Cookie", cookie.String()))
	_, err = f.Authenticate(bearer(t, issued.Secret))
	enginetest.NoError(t, err)
}

func (Conformance) SessionEndsWithItsToken(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	revoked, expired := f.create(t, auth.Admin, 0), f.create(t, auth.Admin, time.Hour)
	one, _, err := f.Login(with(t), revoked.Secret)
	enginetest.NoError(t, err)
	two, _, err := f.Login(with(t), expired.Secret)
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.Revoke(t.Context(), revoked.ID))
	f.refuses(t, "session of a revoked token", with(t, "Cookie", one.String()))
	f.clock.Advance(time.Hour)
	f.refuses(t, "session of an expired token", with(t, "Cookie", two.String()))
}

func (Conformance) SessionEndsWhenItIsNotUsedOrOld(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &auth.Options{SessionIdle: time.Hour, SessionMax: 5 * time.Hour})
	issued := f.create(t, auth.Admin, 0)
	idle, _, err := f.Login(with(t), issued.Secret)
	enginetest.NoError(t, err)
	busy, _, err := f.Login(with(t), issued.Secret)
	enginetest.NoError(t, err)
	for range 9 {
		f.clock.Advance(30 * time.Minute)
		_, err := f.Authenticate(with(t, "Cookie", busy.String()))
		enginetest.NoError(t, err)
	}
	f.refuses(t, "idle", with(t, "Cookie", idle.String()))
	f.clock.Advance(30 * time.Minute)
	f.refuses(t, "old", with(t, "Cookie", busy.String()))
}

func TestCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	f, proxied := onSQLite(t, nil), onSQLite(t, &auth.Options{SecureCookies: true})
	plain := with(t)
	plain.TLS = nil
	for _, c := range []struct {
		f      fixture
		r      *http.Request
		secure bool
	}{{f, with(t), true}, {f, plain, false}, {proxied, plain, true}} {
		cookie, _, err := c.f.Login(c.r, c.f.create(t, auth.Viewer, 0).Secret)
		enginetest.NoError(t, err)
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" || cookie.Secure != c.secure {
			t.Errorf("%s", cookie)
		}
	}
}

func TestOnlyAPITokensBeginSessions(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 100})
	issued := f.create(t, auth.Admin, 0)
	session, _, err := f.Login(with(t), issued.Secret)
	enginetest.NoError(t, err)
	actor, err := f.CreateActor(t.Context(), scope, 0)
	enginetest.NoError(t, err)
	for _, secret := range []string{"", "x", session.Value, actor.Secret, issued.Secret + "x"} {
		_, _, err := f.Login(with(t), secret)
		enginetest.Is(t, err, auth.ErrUnauthenticated)
	}
	if _, err := f.Logout(with(t)); err != nil { // without a session
		t.Error(err)
	}
}
