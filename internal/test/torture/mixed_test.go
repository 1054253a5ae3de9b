package torture_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/outbox"
)

// mixedWriter writes rows of the application, each with an event whose key is the id of the
// row, on all paths at the same time.
type mixedWriter struct {
	own, pooled *perdure.Engine
	app         *sql.DB // the application's own connections
	insert      string
}

// paths are the ways in which a row and its event can be written.
var paths = map[string]func(w *mixedWriter, ctx context.Context, id string) error{
	"recorded": func(w *mixedWriter, ctx context.Context, id string) error {
		return w.own.Update(ctx, func(tx *perdure.Tx) error {
			_ = tx.Emit("mixed", id, id) // the Tx has the error
			_, err := tx.Exec(w.insert, id)
			return err
		})
	},
	"native": func(w *mixedWriter, ctx context.Context, id string) error {
		return w.pooled.Update(ctx, func(tx *perdure.Tx) error {
			stx, err := tx.SQL()
			if err != nil {
				return err
			}
			if _, err := stx.ExecContext(ctx, w.insert, id); err != nil {
				return err
			}
			return tx.Emit("mixed", id, id)
		})
	},
	"joined": func(w *mixedWriter, ctx context.Context, id string) error {
		return w.inTx(ctx, id, func(tx *sql.Tx) error {
			return w.pooled.JoinSQL(ctx, tx, func(tx *perdure.Tx) error { return tx.Emit("mixed", id, id) })
		})
	},
	"function": func(w *mixedWriter, ctx context.Context, id string) error {
		return w.inTx(ctx, id, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "select perdure.emit('mixed', $1, to_jsonb($1::text))", id)
			return err
		})
	},
}

// inTx writes the row in a transaction of the application.
func (w *mixedWriter) inTx(ctx context.Context, id string, fn func(tx *sql.Tx) error) error {
	tx, err := w.app.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, w.insert, id); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// writeMixed is the role of a child that writes on all paths until it is killed.
func writeMixed(ctx context.Context, self *torture.Self) error {
	var args writing
	if err := self.Args(&args); err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	w, err := openMixed(ctx, args.DSN)
	if err != nil {
		return err
	}
	failed := make(chan error)
	var first sync.WaitGroup // the first acknowledgement on each path
	for path, exists := range pathsOn(args.DSN) {
		if !exists {
			continue
		}
		first.Add(1)
		done := sync.OnceFunc(first.Done)
		for range 2 {
			go func() { failed <- w.write(ctx, path, journal, done) }()
		}
	}
	go func() {
		first.Wait()
		self.Ready()
	}()
	return <-failed
}

// pathsOn returns the paths that a database has.
func pathsOn(dsn string) map[string]bool {
	return map[string]bool{"recorded": true, "native": true, "joined": true, "function": strings.HasPrefix(dsn, "postgres")}
}

func openMixed(ctx context.Context, dsn string) (*mixedWriter, error) {
	options := &perdure.Options{Outbox: true}
	own, err := perdure.Open(ctx, dsn, options)
	if err != nil {
		return nil, err
	}
	pooled, _, err := torture.OpenPooled(ctx, dsn, options)
	if err != nil {
		return nil, err
	}
	app, err := openApp(dsn)
	dialect := sqldb.Dialect{Name: sqldb.MySQL}
	if strings.HasPrefix(dsn, "postgres") {
		dialect.Name = sqldb.Postgres
	}
	return &mixedWriter{own: own, pooled: pooled, app: app, insert: dialect.Rebind("insert into mixed (id) values (?)")}, err
}

// openApp opens the application's own connections.
func openApp(dsn string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=synchronous(full)&_txlock=immediate")
	}
	return testdb.Open(dsn)
}

// write writes rows on one path. An error is not an outcome: the audit decides by the row.
func (w *mixedWriter) write(ctx context.Context, path string, journal *torture.Journal, acknowledged func()) error {
	write := paths[path]
	failures := 0
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d-%d", path, time.Now().UnixNano(), i)
		if err := journal.Intend(id); err != nil {
			return err
		}
		if err := write(w, ctx, id); err != nil {
			if failures++; failures == 200 {
				return fmt.Errorf("path %s: %w", path, err)
			}
			continue
		}
		failures = 0
		if err := journal.Acknowledge(id); err != nil {
			return err
		}
		acknowledged()
	}
	return ctx.Err()
}

// Engines with their own connections, engines on pools, the application's transactions, joins
// and SQL functions write at the same time, and are killed: each row has one event, each event
// a row, nothing that was acknowledged is missing, and the order has no holes.
func TestMixedPathsAgreeThroughKills(t *testing.T) {
	on(t, []backend{onSQLite, {"Postgres", testdb.DurablePostgres}, {"MySQL", testdb.DurableMySQL}}, func(t *testing.T, dsn string) {
		args := writing{DSN: dsn, Journal: filepath.Join(t.TempDir(), "journal")}
		eng, err := perdure.Open(t.Context(), dsn, &perdure.Options{Outbox: true})
		if err != nil {
			t.Fatal(err)
		}
		defer eng.Close()
		app, err := openApp(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		if _, err := app.ExecContext(t.Context(), "create table mixed (id varchar(80) primary key)"); err != nil {
			t.Fatal(err)
		}
		loop := &torture.CrashLoop{
			Start:   func() (*torture.Child, error) { return torture.StartChild("writeMixed", args) },
			Kills:   times(5),
			Seed:    seedOf(t),
			Longest: 300 * time.Millisecond,
		}
		if err := loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		auditMixed(t, eng, app, args)
	})
}

func auditMixed(t *testing.T, eng *perdure.Engine, app *sql.DB, args writing) {
	t.Helper()
	ctx := t.Context()
	// Transactions of killed clients end when the server notices. A write waits for them.
	if err := eng.Update(ctx, func(tx *perdure.Tx) error { return tx.Emit("end", "", nil) }); err != nil {
		t.Fatal(err)
	}
	verify(t, eng.Outbox())
	events, last := map[string]int{}, outbox.Stamp{}
	for more := true; more; {
		entries, err := eng.Outbox().List(ctx, last, outbox.MaxLimit)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Stamp.Counter() != last.Counter()+1 {
				t.Errorf("entry %s follows %s", entry.Stamp, last)
			}
			last = entry.Stamp
			for _, event := range entry.Payload.Events {
				if event.Topic == "mixed" {
					events[event.Key]++
				}
			}
		}
		more = len(entries) > 0
	}
	rows, err := readIDs(ctx, app)
	if err != nil {
		t.Fatal(err)
	}
	known, err := torture.ReadJournal(args.Journal)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]int{}
	for id, outcome := range known {
		path, _, _ := strings.Cut(id, "-")
		if outcome == torture.Acknowledged {
			acknowledged[path]++
		}
		if events[id] > 1 || (events[id] == 1) != rows[id] || outcome == torture.Acknowledged && !rows[id] {
			t.Errorf("%s is %v, has %d events, and its row exists: %v", id, outcome, events[id], rows[id])
		}
		delete(events, id)
		delete(rows, id)
	}
	if len(events) > 0 || len(rows) > 0 {
		t.Errorf("no process wrote the events %v and the rows %v", events, rows)
	}
	t.Logf("acknowledged: %v; %d entries", acknowledged, last.Counter())
	for path, exists := range pathsOn(args.DSN) {
		if exists && acknowledged[path] == 0 {
			t.Errorf("nothing was acknowledged on the path %s", path)
		}
	}
}

func readIDs(ctx context.Context, app *sql.DB) (map[string]bool, error) {
	rows, err := app.QueryContext(ctx, "select id from mixed")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var id string
		err = errors.Join(err, rows.Scan(&id))
		found[id] = true
	}
	return found, errors.Join(err, rows.Err())
}
