package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	completionTime = testdb.Patience
	testdb.Main(m)
}

// outcome is what a shell sees of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs a command line without an environment.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runWith(t, nil, args...)
}

func runWith(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// want checks the exit code and that texts are in the output.
func (o outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code is %d, want %d", o.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(o.stdout+o.stderr, text) {
			t.Errorf("the output lacks %q", text)
		}
	}
	if t.Failed() {
		t.Fatalf("stdout:\n%s\nstderr:\n%s", o.stdout, o.stderr)
	}
}

// wantError checks that nothing but one line of error was printed.
func (o outcome) wantError(t *testing.T, code int, texts ...string) {
	t.Helper()
	o.want(t, code, texts...)
	if o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "perdure: ") {
		t.Fatalf("not one line of error:\n%s%s", o.stdout, o.stderr)
	}
}

// decode reads the output as one JSON document.
func (o outcome) decode(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, o.stdout)
	}
	return v
}

// sqliteDSN returns a database without data.
func sqliteDSN(t testing.TB) string {
	t.Helper()
	return enginetest.New(t, enginetest.SQLite).DSN
}

// databases returns a database of each kind for the test, without data.
func databases() map[string]func(testing.TB) string { return databasesBy(enginetest.New) }

// emptyDatabases returns a database of each kind that was never migrated.
func emptyDatabases() map[string]func(testing.TB) string { return databasesBy(enginetest.Empty) }

func databasesBy(create func(testing.TB, string) enginetest.Database) map[string]func(testing.TB) string {
	all := map[string]func(testing.TB) string{}
	for _, name := range enginetest.Names {
		all[name] = func(t testing.TB) string { t.Helper(); return create(t, name).DSN }
	}
	return all
}

// filled returns a database with three entries in its outbox: three users, the
// first one renamed, the last one deleted.
func filled(t *testing.T, dsn string) {
	t.Helper()
	users := schema.NewTable("users", schema.String("name"))
	eng, err := perdure.Open(t.Context(), dsn, &perdure.Options{Schemas: []*schema.Schema{schema.New("app", users)}, Outbox: true})
	if err != nil {
		t.Fatal(err)
	}
	units := []func(tx *perdure.Tx){
		func(tx *perdure.Tx) {
			for _, id := range []string{"ann", "bob", "cy\x1b[31m"} {
				_, _ = tx.Create(users, schema.Values{"id": id, "name": id})
			}
		},
		func(tx *perdure.Tx) { _ = tx.Update(users, "ann", schema.Values{"name": "Anna"}) },
		func(tx *perdure.Tx) { _ = tx.Delete(users, "bob") },
	}
	for _, unit := range units {
		if err := eng.Update(t.Context(), func(tx *perdure.Tx) error { unit(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// withEngine runs fn on the database.
func withEngine(t *testing.T, dsn string, fn func(*perdure.Engine)) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	fn(eng)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}

func stamp(n uint64) string { return outbox.NewStamp(0, n, 0).String() }

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	run(t).want(t, 0, "Available Commands", "migrate", "outbox", "completion")
	run(t, "outbox").want(t, 0, "verify", "consumers")
	run(t, "outbox", "tail", "--help").want(t, 0, "when it is interrupted", "--after")
	run(t, "version").want(t, 0, "perdure "+perdure.Version+" (", "go1.")
	if v := run(t, "version", "--json").decode(t); v["version"] != perdure.Version || v["go"] == "" || v["platform"] == "" {
		t.Errorf("version is %v", v)
	}
	run(t, "completion", "bash").want(t, 0, "perdure")
}

func TestUsageErrorsExitWithTwo(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	for text, args := range map[string][]string{
		`did you mean "outbox"`:          {"outbx"},
		`did you mean "list"`:            {"outbox", "lst"},
		"unknown command":                {"nothing"},
		"unknown flag":                   {"version", "--nope"},
		"database is required":           {"outbox", "list"},
		"24 hexadecimal digits":          {"outbox", "list", "--dsn", dsn, "--after", "xyz"},
		"between 1 and 1000, got 1001":   {"outbox", "list", "--dsn", dsn, "--limit", "1001"},
		"between 1 and 1000, got -1":     {"outbox", "list", "--dsn", dsn, "--limit", "-1"},
		"--limit must not be negative":   {"outbox", "tail", "--dsn", dsn, "--limit", "-1"},
		"are mutually exclusive":         {"outbox", "tail", "--dsn", dsn, "--new", "--after", stamp(1)},
		"--watch must not be negative":   {"outbox", "verify", "--dsn", dsn, "--watch", "-1s"},
		"must start with sqlite:":        {"migrate", "--dsn", "oracle://x"},
		"must start with sqlite":         {"migrate", "--print", "--dsn", "oracle://x"},
		"--older-than is required":       {"outbox", "purge", "--dsn", dsn},
		"must be a duration":             {"outbox", "purge", "--dsn", dsn, "--older-than", "soon"},
		"must be between 0d and":         {"outbox", "purge", "--dsn", dsn, "--older-than", "-3d"},
		"--reason is required":           {"outbox", "restart", "--dsn", dsn, "--yes"},
		"pass --yes":                     {"outbox", "restart", "--dsn", dsn, "--reason", "why"},
		"accepts 1 arg":                  {"outbox", "consumers", "reset", "--dsn", dsn},
		"--to is required":               {"outbox", "consumers", "reset", "x", "--dsn", dsn},
		`"perdure outbox consumers lst"`: {"outbox", "consumers", "lst", "--dsn", dsn},
		"writers must be":                {"bench", "outbox", "--writers", "0"},
		"--every must be":                {"dev", "--every", "0s"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			run(t, args...).wantError(t, exitUsage, text)
		})
	}
}

func TestErrorsAreOneJSONObjectWithJSON(t *testing.T) {
	t.Parallel()
	o := run(t, "outbox", "list", "--json")
	var problem struct {
		Title, Detail string
		Code          int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(o.stderr), &problem); err != nil {
		t.Fatal(err, o.stderr)
	}
	if o.code != exitUsage || problem.Code != o.code || problem.Title != "usage" || !strings.Contains(problem.Detail, "database is required") {
		t.Errorf("%d: %+v", o.code, problem)
	}
}

func TestMissingThingsExitWithThree(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.db")
	run(t, "outbox", "status", "--dsn", "sqlite:"+missing).wantError(t, exitNotFound, "no such file")
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("a command that only looks has created the file")
	}
	dsn := sqliteDSN(t)
	filled(t, dsn)
	run(t, "outbox", "consumers", "delete", "nobody", "--dsn", dsn).wantError(t, exitNotFound, `consumer "nobody" does not exist`)
	run(t, "outbox", "consumers", "reset", "nobody", "--to", stamp(1), "--dsn", dsn).wantError(t, exitNotFound, "nobody")
}

func TestReadersDoNotMigrate(t *testing.T) {
	t.Parallel()
	for name, dsn := range emptyDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			if path, ok := sqliteFile(dsn); ok { // it must exist
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, command := range []string{"list", "tail", "verify", "status"} {
				run(t, "outbox", command, "--dsn", dsn).wantError(t, exitConflict, `run "perdure migrate"`)
			}
			run(t, "migrate", "--dsn", dsn).want(t, 0, "is up to date")
			run(t, "outbox", "status", "--dsn", dsn).want(t, 0, "none")
		})
	}
}

func TestUnreachableServersExitWithSeven(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"postgres", "mysql"} {
		o := run(t, "outbox", "list", "--dsn", scheme+"://user:hunter22@127.0.0.1:1/db")
		o.wantError(t, exitUnreachable, "connection refused")
		if strings.Contains(o.stderr, "hunter22") {
			t.Errorf("the password was printed: %s", o.stderr)
		}
	}
}

func TestInterruptedCommandsExitWithTheSignal(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&Interrupted{Signal: signal})
		var stdout, stderr bytes.Buffer
		if got := Run(ctx, []string{"migrate", "--dsn", emptyDatabases()["sqlite"](t)}, strings.NewReader(""), &stdout, &stderr, nil); got != code {
			t.Errorf("%s: exit code is %d: %s", signal, got, stderr.String())
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, dsn := range emptyDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			run(t, "migrate", "--dsn", dsn).want(t, 0, "is up to date: created at version")
			run(t, "migrate", "--dsn", dsn).want(t, 0, "is up to date: already at version") // again is no mistake
			if v := run(t, "migrate", "--dsn", dsn, "--json").decode(t); v["status"] != "up to date" || v["from"] != v["to"] || v["to"] == 0. {
				t.Errorf("got %v", v)
			}
		})
	}
}

func TestMigratePrintNeedsOnlyTheScheme(t *testing.T) {
	t.Parallel()
	for dsn, text := range map[string]string{
		"sqlite:": "create table perdure_outbox", "postgres://": "create table perdure.outbox", "mysql://": "utf8mb4_0900_bin", "mariadb://": "utf8mb4_nopad_bin",
	} {
		run(t, "migrate", "--print", "--dsn", dsn).want(t, 0, text, "outbox_clock")
		if v := run(t, "migrate", "--print", "--json", "--dsn", dsn).decode(t); !strings.Contains(v["sql"].(string), text) {
			t.Errorf("%s: %v", dsn, v)
		}
	}
}
