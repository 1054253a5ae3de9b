package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// onPgx runs a test on engines with each kind of connection of pgx.
func onPgx(t *testing.T, test func(t *testing.T, db enginetest.Database, eng *perdure.Engine)) {
	t.Helper()
	t.Parallel()
	simple := func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol }
	for name, open := range map[string]func(enginetest.Database, testing.TB, *perdure.Options) *perdure.Engine{
		"Open": enginetest.Database.Open, "OpenPgx": enginetest.Database.OpenPool, "OpenSQL": enginetest.Database.OpenSQL,
		"Simple": func(db enginetest.Database, t testing.TB, options *perdure.Options) *perdure.Engine {
			eng, err := perdure.OpenPgx(enginetest.Context(t), db.Pgx(t, simple), options)
			enginetest.NoError(t, err)
			t.Cleanup(func() { enginetest.NoError(t, eng.Close()) })
			return eng
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, enginetest.Postgres)
			test(t, db, Native{open: open}.start(t, db))
		})
	}
}

func TestAPgxTxIsTheTransactionOfTheUnit(t *testing.T) {
	onPgx(t, func(t *testing.T, db enginetest.Database, eng *perdure.Engine) {
		ctx := t.Context()
		update(t, eng, func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "bob"})
			own, err := tx.Pgx()
			enginetest.NoError(t, err)
			var found int
			enginetest.NoError(t, own.QueryRow(ctx, "select count(*) from blog.users").Scan(&found))
			if found != 2 {
				t.Errorf("the transaction has %d users, want 2", found)
			}
			if _, err := own.CopyFrom(ctx, pgx.Identifier{"notes"}, []string{"id", "note"}, pgx.CopyFromRows([][]any{{1, "a"}, {2, "b"}})); err != nil {
				return err
			}
			batch := &pgx.Batch{}
			batch.Queue("insert into notes values (3, 'c')")
			batch.Queue("select count(*) from notes").QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
			enginetest.NoError(t, own.SendBatch(ctx, batch).Close())
			rows, err := own.Query(ctx, "select note from notes order by id")
			enginetest.NoError(t, err)
			texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
			enginetest.NoError(t, err)
			if found != 3 || len(texts) != 3 {
				t.Errorf("the transaction has %d notes: %q", found, texts)
			}
			if err := own.QueryRow(ctx, "select id from notes where id = 9").Scan(&found); !errors.Is(err, pgx.ErrNoRows) {
				t.Errorf("no rows: %v", err)
			}
			objects := own.LargeObjects()
			if _, err := objects.Create(ctx, 0); err != nil {
				return err
			}
			left, err := own.Query(ctx, "select id from notes") // left open
			enginetest.NoError(t, err)
			left.Next()
			return nil
		})
		if got := notes(t, db); got != 3 {
			t.Errorf("%d notes are committed", got)
		}
		sound(t, eng)
	})
}

func TestANestedPgxTxIsASavepoint(t *testing.T) {
	onPgx(t, func(t *testing.T, db enginetest.Database, eng *perdure.Engine) {
		ctx := t.Context()
		update(t, eng, func(tx *perdure.Tx) error {
			own, err := tx.Pgx()
			enginetest.NoError(t, err)
			inner, err := own.Begin(ctx)
			enginetest.NoError(t, err)
			_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "bob"})
			_, err = inner.Exec(ctx, "insert into notes values (1, 'a'), (1, 'b')")
			if err == nil {
				t.Error("a duplicate was written")
			}
			enginetest.NoError(t, inner.Rollback(ctx))
			enginetest.Is(t, inner.Rollback(ctx), pgx.ErrTxClosed)
			kept, err := own.Begin(ctx)
			enginetest.NoError(t, err)
			_, err = kept.Exec(ctx, "insert into notes values (2, 'c')")
			enginetest.NoError(t, err)
			_, _ = tx.Create(users, schema.Values{"id": "cid", "name": "cid"})
			return kept.Commit(ctx)
		})
		if got, rows := notes(t, db), db.Rows(t, "blog", "users"); got != 1 || rows != 2 {
			t.Errorf("%d notes and %d users are committed", got, rows)
		}
		sound(t, eng)
	})
}

func TestOnlyTheEngineCommitsAPgxTx(t *testing.T) {
	onPgx(t, func(t *testing.T, db enginetest.Database, eng *perdure.Engine) {
		for name, end := range map[string]func(tx pgx.Tx) error{
			"Commit":   func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
			"Rollback": func(tx pgx.Tx) error { return tx.Rollback(t.Context()) },
			"COMMIT":   func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), "commit"); return err },
			"Conn":     func(tx pgx.Tx) error { _, err := tx.Conn().Exec(t.Context(), "rollback"); return err },
		} {
			db.Unchanged(t, func() {
				err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
					own, err := tx.Pgx()
					enginetest.NoError(t, err)
					_, err = own.Exec(t.Context(), "insert into notes values (1, 'a')")
					enginetest.NoError(t, err)
					_, _ = tx.Create(users, schema.Values{"name": "bob"})
					if err := end(own); name != "Conn" && !errors.Is(err, fault.ErrEngineCommits) {
						t.Errorf("%s returned %v", name, err)
					}
					return nil
				})
				if !errors.Is(err, fault.ErrEngineCommits) {
					t.Errorf("%s: the unit ended with %v", name, err)
				}
			})
		}
	})
}

func TestAPgxTxIsClosedWithItsUnit(t *testing.T) {
	onPgx(t, func(t *testing.T, _ enginetest.Database, eng *perdure.Engine) {
		var own pgx.Tx
		var objects pgx.LargeObjects
		ended := make(chan error, 1)
		update(t, eng, func(tx *perdure.Tx) (err error) {
			own, err = tx.Pgx()
			enginetest.NoError(t, err)
			objects = own.LargeObjects()
			started := make(chan struct{})
			go func() { // it does not end with the function
				_, err := own.Exec(context.Background(), "select 1")
				close(started)
				for err == nil {
					_, err = own.Exec(context.Background(), "select 1")
				}
				ended <- err
			}()
			<-started
			return nil
		})
		if err := <-ended; !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("late use: %v", err)
		}
		if _, err := objects.Create(t.Context(), 0); err == nil {
			t.Error("a large object was created after the unit")
		}
		enginetest.Is(t, own.Commit(t.Context()), pgx.ErrTxClosed)
		if rows, err := own.Query(t.Context(), "select 1"); err == nil || rows.Next() {
			t.Errorf("a query ran after the unit: %v", rows)
		}
	})
}

func TestADeadlockInAPgxTxRunsTheFunctionAgain(t *testing.T) {
	onPgx(t, func(t *testing.T, db enginetest.Database, eng *perdure.Engine) {
		createUser(t, eng, "bob")
		both := make(chan struct{}, 2)
		ready := make(chan struct{})
		go func() {
			<-both
			<-both
			close(ready)
		}()
		results := make(chan error, 2)
		for _, order := range [][2]string{{"ann", "bob"}, {"bob", "ann"}} {
			go func() {
				first := true
				results <- eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
					own, err := tx.Pgx()
					if err != nil {
						return err
					}
					for i, id := range order {
						if i == 1 && first {
							first = false
							both <- struct{}{}
							<-ready // both have one row
						}
						if _, err := own.Exec(t.Context(), "update blog.users set points = points + 1 where id = $1", id); err != nil {
							return err
						}
					}
					return nil
				})
			}()
		}
		enginetest.NoError(t, <-results)
		enginetest.NoError(t, <-results)
		if got := db.Int(t, "select sum(points) from blog.users"); got != 4 {
			t.Errorf("the sum is %d, want 4", got)
		}
	})
}
