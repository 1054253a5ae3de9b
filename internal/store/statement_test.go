package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// migrated returns a database of that dialect with all tables. On servers it is a copy, or
// was emptied: to create the tables of PostgreSQL takes a quarter of a second.
func migrated(t *testing.T, name string) (sqldb.DB, *Store) {
	t.Helper()
	url, prepare := "sqlite::memory:", func(url string) error { return prepared(name, url) }
	switch name {
	case sqldb.Postgres:
		url = testdb.PostgresTemplate(t, "store", prepare)
	case sqldb.MySQL:
		url = testdb.MySQLTemplate(t, "store", prepare)
	}
	db, err := openURL(t.Context(), name, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if name == sqldb.SQLite {
		err = migrate(t.Context(), db)
	}
	if err != nil {
		t.Fatal(err)
	}
	st, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	return db, st
}

// prepared creates all tables in the database at url.
func prepared(name, url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testdb.Patience)
	defer cancel()
	db, err := openURL(ctx, name, url)
	if err != nil {
		return err
	}
	return errors.Join(migrate(ctx, db), db.Close())
}

func migrate(ctx context.Context, db sqldb.DB) error {
	st, err := New(db)
	if err != nil {
		return err
	}
	return db.Exclusively(ctx, func(run sqldb.Runner) error {
		_, err := st.Migrate(ctx, run, time.Now())
		return err
	})
}

// open returns a database without tables.
func open(t *testing.T, name string) (sqldb.DB, error) {
	t.Helper()
	switch name {
	case sqldb.Postgres:
		return openURL(t.Context(), name, testdb.Postgres(t))
	case sqldb.MySQL:
		return openURL(t.Context(), name, testdb.MySQL(t))
	}
	return openURL(t.Context(), name, "sqlite::memory:")
}

func openURL(ctx context.Context, name, url string) (sqldb.DB, error) {
	switch name {
	case sqldb.Postgres:
		return postgres.Open(ctx, url)
	case sqldb.MySQL:
		return mysql.Open(ctx, url)
	}
	return sqlite.Open(ctx, url)
}

var dialects = []string{sqldb.SQLite, sqldb.Postgres, sqldb.MySQL}

func TestEveryStatementSuitsTheTables(t *testing.T) {
	t.Parallel()
	for _, name := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, name)
			all := maps.Clone(st.statements.plain)
			for _, ids := range [][]string{nil, {"a", "b"}} {
				for statement, text := range st.statements.openable(ids) {
					if text != st.statements.plain[statement] {
						all[statement+strings.Join(append([]string{"_openable"}, ids...), "_")] = text
					}
				}
			}
			if len(all) == len(st.statements.plain) {
				t.Error("no statement has a condition")
			}
			for statement, text := range all {
				text, _ = repeat(text, nil, nil)
				if name != sqldb.SQLite && strings.Contains(text, "suspect in (") {
					t.Errorf("%s: servers use the index of ready only for suspect = a value, and otherwise read all rows of the queue", statement)
				}
				if strings.Contains(strings.ReplaceAll(text, `{"$sealed"`, ""), "{") {
					continue // a part: the program completes it
				}
				for n, part := range strings.Split(text, "\n;\n") {
					if err := prepare(t.Context(), db, statement+strings.Repeat("_", n), part); err != nil {
						t.Errorf("%s: %v\n%s", statement, err, part)
					}
				}
			}
		})
	}
}

// prepare has the database parse a statement and look its names up.
func prepare(ctx context.Context, db sqldb.DB, name, text string) error {
	tx, err := db.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	switch db.Dialect().Name {
	case sqldb.Postgres:
		return tx.Run(ctx, sqldb.Exec("prepare "+name+" as "+text))
	case sqldb.MySQL:
		text, _ = unnumbered(text, nil)
		return tx.Run(ctx, sqldb.Exec("prepare "+name+" from ?", text))
	}
	args := make([]any, 30) // more than any statement numbers; the rest is ignored
	return tx.Run(ctx, sqldb.Stmt{SQL: "explain " + text, Args: args, Row: func(sqldb.Scan) error { return nil }})
}

// special are the statements that a dialect has for a method of its own.
var special = map[string][]string{
	"OutboxAppend": {sqldb.Postgres},
	// Only here a pass over due timers can lock them before it records them.
	"TimerHold":       {sqldb.Postgres},
	"ActorHeld":       {sqldb.Postgres},
	"ActorStepHeld":   {sqldb.Postgres},
	"TimerDeleteHeld": {sqldb.Postgres},
	"CounterGuard":    {sqldb.Postgres},
	"Horizon":         {sqldb.Postgres},
	"FloorDoctor":     {sqldb.Postgres},
	// Only PostgreSQL has SQL functions for applications.
	"ActorInboxEarlier": {sqldb.Postgres},
	"ActorInboxRemove":  {sqldb.Postgres},
	"InstanceLanes":     {sqldb.Postgres, sqldb.SQLite},
	"InstanceMove":      {sqldb.Postgres, sqldb.SQLite},
	"InstanceUnshare":   {sqldb.Postgres, sqldb.SQLite},
	"HookInsertMany":    {sqldb.Postgres},
	"ActorInboxSweep":   {sqldb.Postgres},
	"FailingTasks":      {sqldb.Postgres, sqldb.SQLite},
}

func TestEveryDialectHasEveryStatement(t *testing.T) {
	t.Parallel()
	texts := map[string]map[string]string{}
	var all []string
	for _, name := range dialects {
		loaded, err := load(sqldb.Dialect{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = loaded.plain
		for statement := range loaded.plain {
			all = append(all, statement)
		}
	}
	slices.Sort(all)
	for _, statement := range slices.Compact(all) {
		if strings.Contains(texts[sqldb.SQLite][statement], "{") {
			continue // a part: the program completes it
		}
		if strings.HasPrefix(statement, "Task") || strings.HasPrefix(statement, "Comms") {
			continue // functions of the database on PostgreSQL, statements on SQLite
		}
		for _, name := range dialects {
			want := special[statement] == nil || slices.Contains(special[statement], name)
			if _, has := texts[name][statement]; has != want {
				t.Errorf("%s has %s: %v, want %v", name, statement, has, want)
			}
		}
	}
}

// statementsOf returns the statements of some files.
func statementsOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("find %s: %v", pattern, err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, parse(string(content)))
	}
	return all
}

// TestTheProgramAndTheFilesNameTheSameStatements finds a misspelt name, which
// would be an empty statement, and one that nobody uses any more.
func TestTheProgramAndTheFilesNameTheSameStatements(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`"([A-Z][A-Za-z]+)"`)
	family := regexp.MustCompile(`f\.(?:stmt\(|kind\+)"([A-Za-z]+)"`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range name.FindAllStringSubmatch(string(content), -1) {
			used[match[1]] = true
		}
		for _, match := range family.FindAllStringSubmatch(string(content), -1) {
			used["Hook"+match[1]], used["Alarm"+match[1]], used["Instance"+match[1]] = true, true, true
		}
	}
	known := map[string]bool{}
	for _, dialect := range dialects {
		loaded, err := load(sqldb.Dialect{Name: dialect})
		if err != nil {
			t.Fatal(err)
		}
		for statement, text := range loaded.plain {
			known[statement] = true
			if !used[statement] {
				t.Errorf("%s: nobody uses %s", dialect, statement)
			}
			if text == "" {
				t.Errorf("%s: %s is empty", dialect, statement)
			}
		}
	}
	// Instances are not taken out of ready by themselves, and have their policies apart. Only
	// they are moved to lanes.
	others := []string{"Unready", "RetryBound", "RetryChange", "Lanes", "LaneClaim", "Move", "Unshare"}
	for statement := range used {
		if kind, found := strings.CutPrefix(statement, "Instance"); found && !slices.Contains(others, kind) && used["Hook"+kind] && known["Hook"+kind] != known[statement] {
			t.Errorf("one of the kinds lacks %s", kind)
		}
	}
	call := regexp.MustCompile(`s\.stmt\("([A-Za-z]+)"|\.text\("([A-Za-z]+)"\)`)
	for _, file := range files {
		content, _ := os.ReadFile(file)
		for _, match := range call.FindAllStringSubmatch(string(content), -1) {
			if statement := match[1] + match[2]; !known[statement] && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: there is no statement %s", file, statement)
			}
		}
	}
}
