package health

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func get(t *testing.T, h *Health, path string) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	h.Mount(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func want(t *testing.T, h *Health, path string, status int, parts ...string) {
	t.Helper()
	code, body := get(t, h, path)
	if code != status {
		t.Errorf("%s: status %d, want %d: %s", path, code, status, body)
	}
	for _, p := range parts {
		if !strings.Contains(body, p) {
			t.Errorf("%s: %q lacks %q", path, body, p)
		}
	}
}

func TestAProcessWithItsDatabaseIsReady(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		h := New(db.Open(t, nil), map[string]string{"version": "v1"})
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			want(t, h, path, http.StatusOK, "ok\n")
		}
		want(t, h, "/readyz?verbose", http.StatusOK, "database: ok\n", "migrations: ok\n", "not draining: ok\n")
		answer := httptest.NewRecorder()
		h.ServeVersion(answer, httptest.NewRequest(http.MethodGet, "/version", nil))
		if body := answer.Body.String(); body != `{"version":"v1"}`+"\n" {
			t.Errorf("version: %s", body)
		}
		enginetest.NoError(t, h.Ready(t.Context()))
	})
}

// During a rolling upgrade the old processes serve until they are replaced.
func TestAProcessStaysReadyWhenANewerReleaseMigrates(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		db = enginetest.Empty(t, db.Name)
		h := New(db.Open(t, nil), nil)
		now := any(time.Now().UTC())
		if db.Name == enginetest.SQLite {
			now = time.Now().UnixMicro()
		}
		migrations := db.Table("perdure", "migrations")
		db.Exec(t, "insert into "+migrations+" (version, name, checksum, applied_at) values (9999, 'future', 'x', ?)", now)
		want(t, h, "/readyz?verbose", http.StatusOK, "migrations: ok")
		db.Exec(t, "delete from "+migrations+" where version = 2")
		h.checked = time.Time{} // no result is reused
		want(t, h, "/readyz?verbose", http.StatusServiceUnavailable, "migrations: failed")
	})
}

func TestAProcessThatDrainsIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	h := New(enginetest.New(t, enginetest.SQLite).Open(t, nil), nil)
	want(t, h, "/readyz", http.StatusOK)
	h.Drain()
	want(t, h, "/livez", http.StatusOK)
	want(t, h, "/readyz?verbose", http.StatusServiceUnavailable, "not draining: failed", "database: ok")
}

func TestAProcessWithoutItsDatabaseIsNotReadyAndDoesNotSayWhy(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	secret := Check{"provider", func(context.Context) error { return errors.New("hunter2") }}
	h := New(eng, nil, secret)
	enginetest.NoError(t, eng.Close())
	want(t, h, "/livez", http.StatusOK)
	want(t, h, "/readyz?verbose", http.StatusServiceUnavailable, "database: failed", "migrations: failed", "provider: failed")
	if _, body := get(t, h, "/readyz?verbose"); strings.Contains(body, "hunter2") {
		t.Error("it says why")
	}
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "provider: hunter2") {
		t.Errorf("got %v", err)
	}
}
