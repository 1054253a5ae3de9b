package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/task"
)

// work runs the tasks that are due, with a sender for each type of the tests.
// Rendering fails the first time.
func work(t *testing.T, dsn string, rendered *atomic.Int32) {
	t.Helper()
	withEngine(t, dsn, func(eng *perdure.Engine) {
		worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{
			"email": func(context.Context, json.RawMessage) (any, error) {
				return nil, errors.New("no such mailbox\n\x1b[31mreally")
			},
			"render": func(_ context.Context, payload json.RawMessage) (any, error) {
				if rendered.Add(1) == 1 {
					return nil, errors.New("out of ink")
				}
				return payload, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Process(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTasks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := emptyDatabases()[name](t) // a copy lacks the privileges on the database
			run(t, "migrate", "--dsn", dsn).want(t, 0)
			run(t, "task", "list", "--dsn", dsn).want(t, 0, "ID", "TYPE")
			run(t, "task", "enqueue", "email", `{"n": 1}`, "--dsn", dsn).want(t, 0, "task 1 is enqueued")
			run(t, "task", "enqueue", "db_function", `{"db_function": "no.such"}`, "--dsn", dsn).want(t, 0, "task 2")
			run(t, "task", "enqueue", "email", `{}`, "--delay", "1h", "--dsn", dsn, "--json").want(t, 0, `"id": "3"`)
			work(t, dsn, nil)
			checkTaskLists(t, dsn)
			checkTaskChanges(t, dsn)
		})
	}
}

func checkTaskLists(t *testing.T, dsn string) {
	t.Helper()
	run(t, "task", "list", "--dsn", dsn).want(t, 0, "done", "failed", "scheduled")
	page := run(t, "task", "list", "--dsn", dsn, "--json", "--status", "failed,quarantined").decode(t)
	if data := page["data"].([]any); len(data) != 1 || data[0].(map[string]any)["id"] != "2" {
		t.Errorf("dead letters: %v", page)
	}
	page = run(t, "task", "list", "--dsn", dsn, "--json", "--limit", "2").decode(t)
	page = run(t, "task", "list", "--dsn", dsn, "--json", "--cursor", page["next_cursor"].(string)).decode(t)
	if len(page["data"].([]any)) != 1 {
		t.Errorf("second page: %v", page)
	}
	run(t, "task", "show", "2", "--dsn", dsn).want(t, 0, "db_function", "failed", `"no.such"`, "attempts\n#", "errors, newest first", "no.such")
	shown := run(t, "task", "show", "1", "--dsn", dsn, "--json").decode(t)
	if failures := shown["errors"].([]any); len(failures) != 1 || shown["status"] != "done" {
		t.Errorf("task 1: %v", shown)
	}
	run(t, "task", "errors", "--dsn", dsn).want(t, 0, "no such mailbox …", "no.such")
	run(t, "task", "errors", "--task", "1", "--dsn", dsn, "--json").want(t, 0, "no such mailbox")
	run(t, "task", "show", "99", "--dsn", dsn).wantError(t, exitNotFound, "does not exist")
	run(t, "task", "show", "x", "--dsn", dsn).wantError(t, exitUsage, "id of a task must be a positive number")
	run(t, "task", "list", "--status", "sleepy", "--dsn", dsn).wantError(t, exitUsage, "sleepy")
	run(t, "task", "list", "--cursor", "?", "--dsn", dsn).wantError(t, exitUsage, "cursor")
	run(t, "task", "enqueue", "email", "[1]", "--dsn", dsn).wantError(t, exitUsage, "must be an object")
	run(t, "task", "enqueue", "email", "{", "--dsn", dsn).wantError(t, exitUsage, "must be JSON")
	run(t, "task", "enqueue", "E-Mail", "{}", "--dsn", dsn).wantError(t, exitUsage, "task type")
}

func checkTaskChanges(t *testing.T, dsn string) {
	t.Helper()
	run(t, "task", "retry", "2", "3", "--dsn", dsn).want(t, 0, "2 is due now", "3 is due now")
	run(t, "task", "cancel", "2", "--dsn", dsn).want(t, 0, "2 is cancelled")
	run(t, "task", "cancel", "2", "--dsn", dsn).want(t, exitConflict, "is cancelled")
	run(t, "task", "purge", "--dsn", dsn).wantError(t, exitUsage, "--older-than")
	run(t, "task", "purge", "--older-than", "24h", "--dsn", dsn).want(t, 0, "removed 0 tasks and 0 errors")
	run(t, "task", "lint", "--dsn", dsn).want(t, 0, "exactly the required privileges")
}

func TestTasksNeedADatabaseThatCarriesThem(t *testing.T) {
	t.Parallel()
	dsn := databases()["mysql"](t)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	run(t, "task", "list", "--dsn", dsn).wantError(t, exitUsage, "MySQL")
	run(t, "task", "enqueue", "email", "{}", "--dsn", dsn).wantError(t, exitUsage, "MySQL")
}

// TestNewProcess runs the skeleton as it is written: it is applied, lint finds
// nothing, and a process fails once and succeeds.
func TestNewProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, "task", "new-process", "render", "--schema", "printing", "--dir", dir).want(t, 0, "render.sql")
	run(t, "task", "new-process", "render", "--dir", dir).wantError(t, exitUsage, "already exists")
	for _, name := range []string{"Render", "a-b", "1a", "a;b", "comms"} {
		run(t, "task", "new-process", name, "--dir", dir).wantError(t, exitUsage)
	}
	script, err := os.ReadFile(filepath.Join(dir, "render.sql"))
	if err != nil {
		t.Fatal(err)
	}
	dsn := emptyDatabases()["postgres"](t)
	run(t, "migrate", "--dsn", dsn).want(t, 0)
	db, err := testdb.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.80s: %v", statement, err)
		}
	}
	exec(string(script))
	run(t, "task", "lint", "--dsn", dsn).want(t, 0, "exactly the required privileges")
	exec(`select printing.kickoff_render_task('{"page": 7}'); select printing.kickoff_render_task('{}')`)
	var rendered atomic.Int32
	for range 3 {
		work(t, dsn, &rendered)
		exec("update queues.task set scheduled_at = now() where status = 'pending'")
	}
	var facts string
	query := `select concat_ws(' ', (select count(*) from printing.render_task_scheduled), (select count(*) from printing.render_task_failed where not permanent),
		(select count(*) from printing.render_task_failed where permanent), (select result ->> 'page' from printing.render_task_succeeded), (select count(*) from queues.task where status <> 'completed'))`
	if err := db.QueryRowContext(t.Context(), query).Scan(&facts); err != nil {
		t.Fatal(err)
	}
	if facts != "3 1 1 7 0" {
		t.Errorf("facts are %s", facts)
	}
	run(t, "task", "errors", "--dsn", dsn).want(t, 0, "out of ink", "input_is_empty")
	if strings.Contains(string(script), "{name}") || strings.Contains(string(script), "{schema}") {
		t.Error("the skeleton has a placeholder left")
	}
}
