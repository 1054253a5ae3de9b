package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func TestTokensAreCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		dsn := enginetest.New(t, name).DSN
		run(t, "migrate", "--dsn", dsn).want(t, 0)
		created := run(t, "token", "create", "ci", "--role", "operator", "--expires", "90d", "--dsn", dsn)
		created.want(t, 0, "it cannot be shown again")
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

func TestTokensOfActorsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		db := enginetest.New(t, name)
		run(t, "migrate", "--dsn", db.DSN).want(t, 0)
		access, err := auth.New(db.Open(t, nil), nil)
		enginetest.NoError(t, err)
		var secrets []string
		for _, id := range []string{"c-1", "c-1", "c-2"} {
			issued, err := access.CreateActor(t.Context(), auth.ActorScope{Type: "cart", ID: id, CallerKind: "client", CallerID: "ada"}, 0)
			enginetest.NoError(t, err)
			secrets = append(secrets, issued.Secret)
		}
		if api := run(t, "token", "list", "--dsn", db.DSN); strings.Contains(api.stdout, "cart") {
			t.Errorf("among the API tokens: %s", api.stdout)
		}
		run(t, "token", "list", "--actors", "--dsn", db.DSN).want(t, 0, "cart/c-1", "cart/c-2", "client:ada")
		listed := run(t, "token", "list", "--actor", "cart/c-1", "--json", "--dsn", db.DSN)
		listed.want(t, 0, `"type": "cart"`, `"id": "c-1"`, `"expires_at"`)
		for _, hidden := range append(secrets, `"c-2"`) { // an id of a token may contain c-2
			if strings.Contains(listed.stdout, hidden) {
				t.Errorf("the list has %s", hidden)
			}
		}
		all := listed.decode(t)["data"].([]any)
		if len(all) != 2 {
			t.Fatalf("%v", all)
		}
		id := all[0].(map[string]any)["id"].(string)
		run(t, "token", "revoke", id, "--dsn", db.DSN).want(t, 0, "is revoked")
		run(t, "token", "list", "--actor", "cart/c-1", "--json", "--dsn", db.DSN).want(t, 0, `"revoked_at"`)
		page := run(t, "token", "list", "--actors", "--limit", "2", "--json", "--dsn", db.DSN)
		cursor := page.decode(t)["next_cursor"].(string)
		rest := run(t, "token", "list", "--actors", "--limit", "2", "--cursor", cursor, "--json", "--dsn", db.DSN)
		if data := rest.decode(t)["data"].([]any); len(data) != 1 {
			t.Errorf("the second page has %v", data)
		}
		run(t, "token", "list", "--actors", "--limit", "0", "--dsn", db.DSN).wantError(t, 2, "between 1 and 1000")
		run(t, "token", "list", "--actor", "cart", "--dsn", db.DSN).wantError(t, 2, "cart")
		run(t, "token", "list", "--actors", "--cursor", "x", "--dsn", db.DSN).wantError(t, 2, "cursor")
	}
}

func TestTokenWithUnknownRoleIsNotCreated(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	run(t, "token", "create", "ci", "--role", "root", "--dsn", dsn).wantError(t, 2, "viewer, operator or admin")
	run(t, "token", "create", "ci", "--role", "anyone", "--dsn", dsn).wantError(t, 2, "must be")
}
