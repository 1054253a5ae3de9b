package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// verify returns what Verify finds, by an engine that knows no schemas: the
// descriptions in the database are all it has.
func verify(t testing.TB, db enginetest.Database) outbox.Report {
	t.Helper()
	eng, err := perdure.Open(enginetest.Context(t), db.DSN, &perdure.Options{NoMigrate: true})
	enginetest.NoError(t, err)
	defer eng.Close()
	report, err := eng.Outbox().Verify(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	return report
}

// verified ends the test unless Verify finds nothing.
func verified(t testing.TB, eng *perdure.Engine) outbox.Report {
	t.Helper()
	report, err := eng.Outbox().Verify(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	if len(report.Problems) > 0 {
		t.Fatalf("problems of a sound outbox: %s", strings.Join(report.Problems, "\n"))
	}
	return report
}

// story commits units of every kind: six entries.
func story(t testing.TB, eng *perdure.Engine) {
	t.Helper()
	create(t, eng, "ann", "bob")
	commit(t, eng, func(tx *perdure.Tx) error {
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_ = tx.UpdateRow(ann, schema.Values{"points": 3})
		_, err = tx.Create(posts, schema.Values{"id": "p1", "author": ann, "body": "hello"})
		return err
	})
	commit(t, eng, func(tx *perdure.Tx) error {
		p1, err := tx.Get(posts, "p1")
		if err != nil {
			return err
		}
		_, err = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("author"), "body": "world"})
		return err
	})
	commit(t, eng, func(tx *perdure.Tx) error { return tx.Delete(posts, "p1") })
	commit(t, eng, func(tx *perdure.Tx) error {
		_ = tx.Emit("written", "p2", 1)
		return tx.Emit("read", "p2", 2)
	})
}

func (Conformance) VerifyFindsNothingWrongWithASoundOutbox(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	verified(t, eng)
	story(t, eng)
	report := verified(t, eng)
	if report.Entries != 6 || report.Mutations != 6 || report.Events != 2 || report.Rows != 3 || report.Last != at(6) || report.NotReplayed != "" {
		t.Errorf("the report is %+v", report)
	}
	if fromDatabase := verify(t, db); fmt.Sprint(fromDatabase) != fmt.Sprint(report) {
		t.Errorf("from the database alone: %+v, want %+v", fromDatabase, report)
	}
}

// corruptions are done by raw SQL. Each must be found.
func corruptions(db enginetest.Database) map[string]string {
	entries, clock := db.Table("perdure", "outbox"), db.Table("perdure", "outbox_clock")
	users, posts := db.Table("blog", "users"), db.Table("blog", "posts")
	stamp := func(counter uint64) string { return literal(db, outbox.NewStamp(0, counter, 0).String()) }
	edit := func(counter uint64, from, to string) string {
		value := "replace(payload, '" + from + "', '" + to + "')"
		if db.Name == enginetest.Postgres {
			value = "replace(payload::text, '" + from + "', '" + to + "')::json"
		}
		return "update " + entries + " set payload = " + value + " where versionstamp = " + stamp(counter)
	}
	return map[string]string{
		"the first entry is gone":         "delete from " + entries + " where versionstamp = " + stamp(1),
		"an entry is gone":                "delete from " + entries + " where versionstamp = " + stamp(3),
		"the last entry is gone":          "delete from " + entries + " where versionstamp = " + stamp(6),
		"all entries are gone":            "delete from " + entries,
		"a value is edited":               edit(4, "world", "wurld"),
		"a name is edited":                edit(1, `"name":"ann"`, `"name":"eve"`),
		"an id is edited":                 edit(2, `"externalId":"bob"`, `"externalId":"bab"`),
		"an operation is edited":          edit(5, `"op":"delete"`, `"op":"remove"`),
		"a table is edited":               edit(5, `"table":"posts"`, `"table":"users"`),
		"a user version is skipped":       edit(3, "000000000000000000030001", "000000000000000000030002"),
		"a stamp is another's":            edit(4, "000000000000000000040000", "000000000000000000010000"),
		"a checked version is off":        edit(3, `"checkVersion":0`, `"checkVersion":1`),
		"an event is numbered as another": edit(6, "000000000000000000060001", "000000000000000000060000"),
		"an event has no topic":           edit(6, `"topic":"read",`, ``),
		"the references are gone":         "update " + entries + " set ref_map = null where versionstamp = " + stamp(4),
		"a reference is edited":           "update " + entries + " set ref_map = '{\"0.author\":\"bob\"}' where versionstamp = " + stamp(4),
		"a row is changed":                "update " + users + " set points = 4 where id = 'ann'",
		"a version is changed":            "update " + users + " set _version = _version + 1 where id = 'bob'",
		"a row is renamed":                "update " + users + " set id = 'rob' where id = 'bob'",
		"a row is inserted":               "insert into " + users + " (id, name, points) values ('eve', 'Eve', 0)",
		"a row is deleted":                "delete from " + users + " where id = 'bob'",
		"a row refers to another":         "update " + posts + " set author = (select _id from " + users + " where id = 'bob')",
		"the counter is ahead":            "update " + clock + " set counter = counter + 1",
		"the counter is behind":           "update " + clock + " set counter = counter - 1",
		"an entry has a user version":     "update " + entries + " set versionstamp = " + literal(db, "000000000000000000030001") + " where versionstamp = " + stamp(3),
	}
}

func (Conformance) VerifyFindsEveryCorruption(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	story(t, eng)
	raw := db.SQL(t)
	for name, statement := range corruptions(db) {
		result, err := raw.ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, _ := result.RowsAffected(); n == 0 {
			t.Fatalf("%s: nothing was corrupted by %s", name, statement)
		}
		if report := verify(t, db); len(report.Problems) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
		rebuild(t, db, raw)
		story(t, eng)
	}
	verified(t, eng)
}

// literal writes bytes in SQL.
func literal(db enginetest.Database, hex string) string {
	if db.Name == enginetest.Postgres {
		return `'\x` + hex + `'`
	}
	return "x'" + hex + "'"
}

// execer is what *sql.DB has.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// rebuild empties the tables and the outbox.
func rebuild(t testing.TB, db enginetest.Database, raw execer) {
	t.Helper()
	for _, statement := range []string{
		"delete from " + db.Table("blog", "posts"), "delete from " + db.Table("blog", "users"),
		"delete from " + db.Table("perdure", "outbox"), "delete from " + db.Table("perdure", "outbox_incarnations"),
		"update " + db.Table("perdure", "outbox_clock") + " set counter = 0, incarnation = 0",
	} {
		if _, err := raw.ExecContext(enginetest.Context(t), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (Conformance) VerifyMissesNoIncarnation(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	restart(t, eng)
	create(t, eng, "c", "d")
	verified(t, eng)
	newest := outbox.NewStamp(1, 0, 0)
	db.Exec(t, "delete from "+db.Table("perdure", "outbox")+" where versionstamp > ?", newest[:])
	db.Exec(t, "delete from "+db.Table("blog", "users")+" where id in ('c', 'd')")
	if report := verify(t, db); len(report.Problems) == 0 {
		t.Error("all entries of the newest incarnation are gone, and nothing was found")
	}
}

// VerifyAfterRetention cannot replay, but finds the order sound and a gap.
func (Conformance) VerifyAfterRetention(t *testing.T, db enginetest.Database) {
	clock := newClock()
	o := options()
	o.Clock = clock
	eng := db.Open(t, o)
	create(t, eng, "ann")
	clock.advance(time.Hour)
	story2 := func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": 9}) }
	commit(t, eng, story2)
	commit(t, eng, func(tx *perdure.Tx) error {
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		return tx.DeleteRow(ann)
	})
	purge(t, eng, time.Minute, 1)
	report := verified(t, eng)
	if report.NotReplayed == "" || report.Entries != 2 {
		t.Errorf("the report is %+v", report)
	}
	third := at(3)
	db.Exec(t, "delete from "+db.Table("perdure", "outbox")+" where versionstamp = ?", third[:])
	if report := verify(t, db); len(report.Problems) == 0 {
		t.Error("an entry is gone, and nothing was found")
	}
}

func (Conformance) VerifyWatchesWriters(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for ctx.Err() == nil {
				_ = eng.Update(context.Background(), func(tx *perdure.Tx) error {
					return tx.Update(users, "ann", schema.Values{"points": 1})
				})
			}
		})
	}
	// However short it is, two snapshots are compared.
	for _, watch := range []time.Duration{time.Nanosecond, 300 * time.Millisecond} {
		report, err := eng.Outbox().Verify(t.Context(), &outbox.VerifyOptions{Watch: watch})
		if err != nil || len(report.Problems) > 0 || report.Snapshots < 2 {
			t.Errorf("after %v and %d snapshots: %v %q", watch, report.Snapshots, err, report.Problems)
		}
	}
	cancel()
	writers.Wait()
}
