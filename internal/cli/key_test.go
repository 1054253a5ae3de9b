package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
)

func TestKeysAreGeneratedAndReplaced(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	var keys []string
	for _, id := range []string{"2026-01", "2026-02"} {
		generated := run(t, "key", "generate", id)
		generated.want(t, 0, id+":")
		keys = append(keys, strings.TrimSpace(generated.stdout))
	}
	ring, err := perdure.ParseKeys(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	trigger(t, dsn, ring)
	env := []string{"PERDURE_ENCRYPTION_KEYS=" + keys[1] + "," + keys[0]}
	runWith(t, env, "key", "status", "--dsn", dsn).want(t, 0, "TO ENCRYPT", "hooks.payload")
	rotated := runWith(t, env, "key", "rotate", "--json", "--dsn", dsn)
	rotated.want(t, 0, `"encrypted": 1`)
	after := []string{"PERDURE_ENCRYPTION_KEYS=" + keys[1]}
	id := run(t, "hook", "list", "--json", "--dsn", dsn).decode(t)["data"].([]any)[0].(map[string]any)["id"].(string)
	runWith(t, after, "hook", "show", id, "--json", "--dsn", dsn).want(t, 0, "planted")
	runWith(t, []string{"PERDURE_ENCRYPTION_KEYS=" + keys[0]}, "key", "rotate", "--dsn", dsn).want(t, 1, "KEY MISSING")
	without := run(t, "hook", "show", id, "--json", "--dsn", dsn)
	without.want(t, 0, "$sealed")
	for _, o := range []outcome{rotated, without} {
		if strings.Contains(o.stdout+o.stderr, strings.Split(keys[1], ":")[1]) || strings.Contains(without.stdout, "planted") {
			t.Errorf("a secret is shown: %s%s", o.stdout, o.stderr)
		}
	}
}

func TestBadKeysAreAnErrorThatDoesNotQuoteThem(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	o := runWith(t, []string{"PERDURE_ENCRYPTION_KEYS=planted"}, "key", "status", "--dsn", dsn)
	o.wantError(t, 2, "encryption key")
	if strings.Contains(o.stderr, "planted") {
		t.Error(o.stderr)
	}
	run(t, "key", "rotate", "--dsn", dsn).wantError(t, 2, "are required")
	run(t, "key", "generate", "a b").wantError(t, 2, "id of an encryption key")
}

func trigger(t *testing.T, dsn string, ring *perdure.Keys) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, &perdure.Options{Keys: ring})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	hooks, err := hook.New(eng, "app", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := hooks.TriggerIn(tx, "mail", "planted", nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
