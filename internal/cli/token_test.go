package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/enginetest"
)

func TestTokensAreCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		dsn := enginetest.New(t, name).DSN
		run(t, "migrate", "--dsn", dsn).want(t, 0)
		created := run(t, "token", "create", "ci", "--role", "operator", "--expires", "90d", "--dsn", dsn)
		created.want(t, 0, "it is not shown again")
		secret := strings.TrimSpace(created.stdout)
		if !strings.HasPrefix(secret, "perdure_sk_") || len(secret) != 54 {
			t.Fatalf("stdout is not the token alone: %q", created.stdout)
		}
		listed := run(t, "token", "list", "--json", "--dsn", dsn)
		listed.want(t, 0, `"name": "ci"`, `"role": "operator"`, `"expires_at"`)
		id := listed.decode(t)["data"].([]any)[0].(map[string]any)["id"].(string)
		run(t, "token", "revoke", id, "--dsn", dsn).want(t, 0, "is revoked")
		after := run(t, "token", "list", "--dsn", dsn)
		after.want(t, 0, "REVOKED", "ci", "operator")
		if strings.Contains(listed.stdout+after.stdout, secret) {
			t.Error("the list has the secret")
		}
		run(t, "token", "revoke", id, "--dsn", dsn).wantError(t, 3, "does not exist")
	}
}

func TestTokenWithUnknownRoleIsNotCreated(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	run(t, "token", "create", "ci", "--role", "root", "--dsn", dsn).wantError(t, 2, "viewer, operator and admin")
	run(t, "token", "create", "ci", "--role", "anyone", "--dsn", dsn).wantError(t, 2, "unknown")
}
