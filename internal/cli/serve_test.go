package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeAnswersUntilItIsAskedToEnd(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]string{
		"sqlite":   `perdure_work_running{kind="task",queue="tasks"} 0`,
		"postgres": `perdure_work_running{kind="task",queue="tasks"} 0`,
		"mysql":    `perdure_work_running{kind="instance"`, // it has no tasks
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := launch(t, "serve", "--dsn", emptyDatabases()[name](t))
			r.want("/livez", http.StatusOK, "ok")
			r.want("/readyz?verbose", http.StatusOK, "database: ok", "migrations: ok")
			r.want("/version", http.StatusOK, `"version"`)
			r.want("/metrics", http.StatusOK, "perdure_build_info", runs)
			r.want("/v1/instances", http.StatusOK, `"data"`)
			run(t, "healthcheck", "--server", r.url).want(t, 0, "ok")
			if code, text := r.end(); code != 0 {
				t.Errorf("exit code is %d: %s", code, text)
			}
			run(t, "healthcheck", "--server", r.url).wantError(t, exitUnreachable, "refused")
		})
	}
}

// A sender that is named would never be used on a database without tasks.
func TestServeRefusesSendersWhereThereAreNoTasks(t *testing.T) {
	t.Parallel()
	run(t, "serve", "--listen", "127.0.0.1:0", "--dsn", databases()["mysql"](t), "--email", "smtp", "--smtp-host", "127.0.0.1").wantError(t, exitUsage, "does not support tasks")
}

func TestServeRefusesWhatIsNotSafe(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	o := run(t, "serve", "--dsn", dsn, "--listen", "0.0.0.0:0")
	if o.code == 0 || !strings.Contains(o.stderr, "token") {
		t.Errorf("exit code is %d: %s", o.code, o.stderr)
	}
	run(t, "serve", "--dsn", dsn, "--tls-cert", "x.pem").wantError(t, exitUsage, "must be set together")
	run(t, "serve", "--dsn", dsn, "--roles", "api,cook").wantError(t, exitUsage, `"cook"`)
	run(t, "serve", "--dsn", dsn, "--log-level", "loud").wantError(t, exitUsage, "debug, info")
	run(t, "serve", "--dsn", dsn, "--email", "pigeon").wantError(t, exitUsage, "files, smtp, resend")
	run(t, "serve", "--dsn", emptyDatabases()["sqlite"](t), "--auto-migrate=false").wantError(t, exitConflict, "migrat")
	run(t, "serve").wantError(t, exitUsage, "database is required")
}

func TestTheEnvironmentConfiguresServe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(sqliteDSN(t)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PERDURE_DATABASE_URL_FILE=" + file, "PERDURE_ROLES=api,cook", "PERDURE_RESEND_KEY=re_x", "PERDURE_SMTP_PASSWORD_FILE=/nowhere"}
	runWith(t, env, "serve").wantError(t, exitUsage, `"cook"`) // and no warning of unknown variables
}

func TestAServerThatDoesNotAnswerIsUnreachable(t *testing.T) {
	t.Parallel()
	run(t, "healthcheck", "--server", "http://127.0.0.1:1").wantError(t, exitUnreachable)
	run(t, "healthcheck", "--server", "nonsense").wantError(t, exitUsage, "must be a URL")
	run(t, "healthcheck", "--server", "http://user:pass@127.0.0.1:1").wantError(t, exitUsage, "PERDURE_TOKEN")
}
