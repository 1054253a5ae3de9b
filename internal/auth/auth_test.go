package auth_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Conformance is what must hold on every database.
type Conformance struct{}

func TestConformance(t *testing.T) {
	enginetest.Conform(t, Conformance{})
}

// fixture is an access with a clock that stands still.
type fixture struct {
	*auth.Access
	clock *perduretest.Clock
}

func newFixture(t *testing.T, db enginetest.Database, options *auth.Options) fixture {
	t.Helper()
	clock := perduretest.NewClock(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	eng := db.Open(t, &perdure.Options{Clock: clock})
	access, err := auth.New(eng, options)
	enginetest.NoError(t, err)
	return fixture{access, clock}
}

func onSQLite(t *testing.T, options *auth.Options) fixture {
	t.Helper()
	return newFixture(t, enginetest.New(t, enginetest.SQLite), options)
}

// with returns a request from another machine with some headers.
func with(t *testing.T, header ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://perdure.example/v1/me", nil)
	r.RemoteAddr = "198.51.100.7:4321"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func bearer(t *testing.T, secret string) *http.Request {
	t.Helper()
	return with(t, "Authorization", "Bearer "+secret)
}

func (f fixture) create(t *testing.T, role auth.Role, good time.Duration) auth.Issued {
	t.Helper()
	issued, err := f.Create(t.Context(), "deploy", role, good)
	enginetest.NoError(t, err)
	return issued
}

func (f fixture) refuses(t *testing.T, what string, r *http.Request) {
	t.Helper()
	if who, err := f.Authenticate(r); !errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("%s: %+v, %v; want it refused", what, who, err)
	}
}

func (Conformance) TokenHasItsRole(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Admin} {
		issued := f.create(t, role, 0)
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER "} {
			who, err := f.Authenticate(with(t, "Authorization", scheme+issued.Secret))
			if err != nil || who.Role != role || who.Label != "deploy" || who.Name != "token:"+issued.ID || who.Actor != nil {
				t.Errorf("%s: %+v, %v", role, who, err)
			}
		}
	}
}

func (Conformance) TokenEndsWhenItExpires(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	issued := f.create(t, auth.Admin, time.Hour)
	f.clock.Advance(time.Hour - time.Second)
	_, err := f.Authenticate(bearer(t, issued.Secret))
	enginetest.NoError(t, err)
	f.clock.Advance(time.Second)
	f.refuses(t, "expired", bearer(t, issued.Secret))
}

func (Conformance) TokenEndsWhenItIsRevoked(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	issued, other := f.create(t, auth.Admin, 0), f.create(t, auth.Admin, 0)
	enginetest.NoError(t, f.Revoke(t.Context(), issued.ID))
	f.refuses(t, "revoked", bearer(t, issued.Secret))
	_, err := f.Authenticate(bearer(t, other.Secret))
	enginetest.NoError(t, err)
	for _, id := range []string{issued.ID, "", "x", "0198f000-0000-7000-8000-000000000000", "' or 1=1"} {
		enginetest.As[*fault.NotFound](t, f.Revoke(t.Context(), id))
	}
}

func (Conformance) ListShowsTokensWithoutSecrets(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	issued := f.create(t, auth.Viewer, time.Hour)
	_, err := f.CreateActor(t.Context(), scope, 0)
	enginetest.NoError(t, err)
	created := f.clock.Now()
	f.clock.Advance(time.Minute)
	for range 3 {
		_, err = f.Authenticate(bearer(t, issued.Secret))
		enginetest.NoError(t, err)
		f.clock.Advance(time.Second) // too soon to be noted again
	}
	enginetest.NoError(t, f.Revoke(t.Context(), issued.ID))
	all, err := f.Tokens(t.Context())
	want := auth.Token{
		ID: issued.ID, Name: "deploy", Role: auth.Viewer, Created: created, Expires: created.Add(time.Hour),
		Used: created.Add(time.Minute), Revoked: created.Add(time.Minute + 3*time.Second),
	}
	if err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v, %v\nwant %+v", all, err, want)
	}
}

func (Conformance) OnlyHashesAreStored(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	api := f.create(t, auth.Admin, 0)
	actor, err := f.CreateActor(t.Context(), scope, 0)
	enginetest.NoError(t, err)
	cookie, _, err := f.Login(with(t), api.Secret)
	enginetest.NoError(t, err)
	rows := dump(t, db)
	if strings.Count(rows, "deploy") < 2 {
		t.Fatalf("tokens are not in the dump:\n%s", rows)
	}
	for _, secret := range []string{api.Secret, actor.Secret, cookie.Value} {
		raw, err := base64.RawURLEncoding.DecodeString(secret[len("perdure_sk_"):])
		enginetest.NoError(t, err)
		if strings.Contains(rows, secret[11:]) || strings.Contains(rows, string(raw)) {
			t.Errorf("a secret is stored:\n%s", rows)
		}
	}
}

// dump returns all rows of the tokens.
func dump(t *testing.T, db enginetest.Database) string {
	t.Helper()
	rows, err := db.SQL(t).QueryContext(t.Context(), "select * from "+db.Table("perdure", "tokens"))
	enginetest.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	enginetest.NoError(t, err)
	var all strings.Builder
	for rows.Next() {
		row, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			pointers[i] = &row[i]
		}
		enginetest.NoError(t, rows.Scan(pointers...))
		fmt.Fprintf(&all, "%s\n", row)
	}
	enginetest.NoError(t, rows.Err())
	return all.String()
}

func (Conformance) ExpiredTokensAreRemovedInTheEnd(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.create(t, auth.Admin, time.Hour)
	f.clock.Advance(60 * 24 * time.Hour)
	f.create(t, auth.Admin, time.Hour)
	all, err := f.Tokens(t.Context())
	if err != nil || len(all) != 1 {
		t.Errorf("%d tokens, %v; want the new one", len(all), err)
	}
}

func TestBadCredentialsAreRefusedAlike(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, &auth.Options{Failures: 1000})
	good := f.create(t, auth.Admin, 0).Secret
	actor, err := f.CreateActor(t.Context(), scope, 0)
	enginetest.NoError(t, err)
	session, _, err := f.Login(with(t), good)
	enginetest.NoError(t, err)
	last := "A"
	if strings.HasSuffix(good, "A") {
		last = "B"
	}
	for what, r := range map[string]*http.Request{
		"nothing":                 with(t),
		"empty":                   bearer(t, ""),
		"no scheme":               with(t, "Authorization", good),
		"basic":                   with(t, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("admin:"+good))),
		"another":                 bearer(t, good[:11]+strings.Repeat("A", 43)),
		"one character":           bearer(t, good[:len(good)-1]+last),
		"cut":                     bearer(t, good[:len(good)-1]),
		"longer":                  bearer(t, good+"A"),
		"space":                   bearer(t, " "+good),
		"actor's prefix":          bearer(t, "perdure_at_"+good[11:]),
		"API's prefix":            bearer(t, "perdure_sk_"+actor.Secret[11:]),
		"session as bearer":       bearer(t, session.Value),
		"API token as cookie":     with(t, "Cookie", auth.CookieName+"="+good),
		"actor's as cookie":       with(t, "Cookie", auth.CookieName+"="+actor.Secret),
		"two headers":             with(t, "Authorization", "Bearer "+good, "Authorization", "Bearer "+good),
		"JWT without alg":         bearer(t, "eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ."),
		"in the query":            httptest.NewRequest(http.MethodGet, "https://perdure.example/v1/me?token="+good, nil),
		"SQL":                     bearer(t, "perdure_sk_' or '1'='1"),
		"bad header, good cookie": with(t, "Authorization", "Bearer x", "Cookie", session.String()),
		"huge":                    bearer(t, strings.Repeat("perdure_sk_", 10_000)),
	} {
		f.refuses(t, what, r)
	}
}

func TestWebSocketSendsTokenAsProtocol(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, nil)
	issued := f.create(t, auth.Viewer, 0)
	who, err := f.Authenticate(with(t, "Sec-WebSocket-Protocol", "perdure, "+issued.Secret))
	if err != nil || who.Role != auth.Viewer {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestBadTokensAreNotCreated(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, nil)
	for _, c := range []struct {
		name string
		role auth.Role
		good time.Duration
	}{{"", auth.Admin, 0}, {"a\nb", auth.Admin, 0}, {"a", auth.Anyone, 0}, {"a", 9, 0}, {"a", auth.Admin, -1}} {
		_, err := f.Create(t.Context(), c.name, c.role, c.good)
		enginetest.As[*fault.Invalid](t, err)
	}
	if all, err := f.Tokens(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestErrorOfTheDatabaseIsNotARefusal(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, nil)
	issued := f.create(t, auth.Admin, 0)
	r := bearer(t, issued.Secret)
	ctx, cancel := contextWithCancel(t)
	cancel()
	_, err := f.Authenticate(r.WithContext(ctx))
	if err == nil || errors.Is(err, auth.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
}
