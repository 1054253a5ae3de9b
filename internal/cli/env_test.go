package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlagsComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := "sqlite:" + filepath.Join(t.TempDir(), "wrong.db")
	for name, env := range map[string][]string{
		"own variable":       {"PERDURE_DATABASE_URL=" + dsn, "DATABASE_URL=" + wrong},
		"fallback":           {"DATABASE_URL=" + dsn},
		"file":               {"PERDURE_DATABASE_URL_FILE=" + file, "DATABASE_URL=" + wrong},
		"file of a fallback": {"DATABASE_URL_FILE=" + file},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runWith(t, env, "outbox", "status").want(t, 0, stamp(3))
		})
	}
	t.Run("flag wins", func(t *testing.T) {
		t.Parallel()
		runWith(t, []string{"PERDURE_DATABASE_URL=" + wrong}, "outbox", "status", "--dsn", dsn).want(t, 0, stamp(3))
	})
	t.Run("other flags", func(t *testing.T) {
		t.Parallel()
		o := runWith(t, []string{"PERDURE_LIMIT=1", "PERDURE_JSON=true"}, "outbox", "list", "--dsn", dsn)
		if v := o.decode(t); len(v["data"].([]any)) != 1 {
			t.Errorf("got %s", o.stdout)
		}
	})
}

func TestWrongEnvironmentIsUsage(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	runWith(t, []string{"PERDURE_LIMIT=many"}, "outbox", "list", "--dsn", dsn).wantError(t, exitUsage, "PERDURE_LIMIT", "many")
	runWith(t, []string{"PERDURE_DATABASE_URL_FILE=/does/not/exist"}, "outbox", "list").wantError(t, exitUsage, "PERDURE_DATABASE_URL_FILE")
}

func TestUnknownVariablesAreWarnedAbout(t *testing.T) {
	t.Parallel()
	o := runWith(t, []string{"PERDURE_DATABSE_URL=x", "PERDURE_XYZ=y", "PERDURE_TEST_POSTGRES=z", "HOME=h"}, "version")
	o.want(t, 0, "PERDURE_DATABSE_URL is set but unknown; did you mean PERDURE_DATABASE_URL?", "PERDURE_XYZ is set but unknown\n")
	if strings.Count(o.stderr, "\n") != 2 {
		t.Errorf("got %s", o.stderr)
	}
}

// Consent is given each time, not once for all.
func TestConsentDoesNotComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	o := runWith(t, []string{"PERDURE_YES=true"}, "outbox", "restart", "--reason", "r", "--dsn", dsn)
	o.want(t, exitUsage, "pass --yes", "PERDURE_YES is set but unknown")
}

func TestColours(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	for name, c := range map[string]struct {
		env  []string
		args []string
		want bool
	}{
		"no terminal": {},
		"forced":      {env: []string{"CLICOLOR_FORCE=1"}, want: true},
		"NO_COLOR":    {env: []string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}},
		"flag":        {env: []string{"CLICOLOR_FORCE=1"}, args: []string{"--no-color"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := runWith(t, c.env, append([]string{"outbox", "list", "--dsn", dsn}, c.args...)...)
			if got := strings.Contains(o.stdout, "\x1b[32mcreate"); got != c.want {
				t.Errorf("coloured: %v\n%q", got, o.stdout)
			}
			if strings.Contains(o.stdout, "cy\x1b") {
				t.Error("an id steers the terminal")
			}
		})
	}
}

func TestPasswordsAreRedacted(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:hunter22@h/db?sslpassword=hunter22": "postgres://u:xxxxx@h/db?sslpassword=xxxxx",
		"mysql://u:hunter22@h:3306/db":                    "mysql://u:xxxxx@h:3306/db",
		"postgres://u:hunter22%zz@h/db":                   "postgres:…",
		"sqlite:a.db":                                     "sqlite:a.db",
	} {
		if got := redacted(dsn); got != want {
			t.Errorf("%s is shown as %s", dsn, got)
		}
	}
	a := &app{dsn: "postgres://u:hunter22@h/db"}
	if got := a.conceal("cannot log in with hunter22"); strings.Contains(got, "hunter22") {
		t.Error(got)
	}
}
