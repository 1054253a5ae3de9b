package stacks_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/stacks/sqlcpgx"
	"github.com/perdure/perdure/internal/test/stacks/sqlcstd"
)

const insertNote = "insert into notes (id, note) values ($1, 'x')"

func usingPgx(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := db.Pgx(t, nil)
	eng, err := perdure.OpenPgx(t.Context(), pool, nil)
	enginetest.NoError(t, err)
	t.Cleanup(func() { enginetest.NoError(t, eng.Close()) })
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.Pgx()
			if err != nil {
				return err
			}
			_, err = own.Exec(tx.Context(), insertNote, id)
			return err
		},
		nested: func(tx *perdure.Tx, id int) error {
			own, err := tx.Pgx()
			if err != nil {
				return err
			}
			return pgx.BeginFunc(tx.Context(), own, func(inner pgx.Tx) error {
				if _, err := inner.Exec(tx.Context(), insertNote, id); err != nil {
					return err
				}
				return errMine
			})
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(own pgx.Tx) error {
				if _, err := own.Exec(ctx, insertNote, id); err != nil {
					return err
				}
				return eng.JoinPgx(ctx, own, fn)
			})
		},
	}
}

func usingSqlcPgx(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := db.Pgx(t, nil)
	eng, err := perdure.OpenPgx(t.Context(), pool, nil)
	enginetest.NoError(t, err)
	t.Cleanup(func() { enginetest.NoError(t, eng.Close()) })
	queries := sqlcpgx.New(pool)
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.Pgx()
			if err != nil {
				return err
			}
			_, err = queries.WithTx(own).CreateNote(tx.Context(), sqlcpgx.CreateNoteParams{ID: int32(id), Note: "x"})
			return err
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(own pgx.Tx) error {
				if _, err := queries.WithTx(own).CreateNote(ctx, sqlcpgx.CreateNoteParams{ID: int32(id), Note: "x"}); err != nil {
					return err
				}
				return eng.JoinPgx(ctx, own, fn)
			})
		},
	}
}

func usingSQL(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := poolOf(t, db)
	eng := openOn(t, pool)
	insertNote := db.Dialect().Rebind("insert into notes (id, note) values (?, 'x')")
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			_, err = own.ExecContext(tx.Context(), insertNote, id)
			return err
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return inTx(ctx, pool, func(own *sql.Tx) error {
				if _, err := own.ExecContext(ctx, insertNote, id); err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own, fn)
			})
		},
	}
}

func usingSqlcSQL(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := db.SQL(t)
	eng, queries := openOn(t, pool), sqlcstd.New(pool)
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			_, err = queries.WithTx(own).CreateNote(tx.Context(), sqlcstd.CreateNoteParams{ID: int32(id), Note: "x"})
			return err
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return inTx(ctx, pool, func(own *sql.Tx) error {
				if _, err := queries.WithTx(own).CreateNote(ctx, sqlcstd.CreateNoteParams{ID: int32(id), Note: "x"}); err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own, fn)
			})
		},
	}
}

// usingPq joins transactions of lib/pq. An engine cannot be opened on it, and the error tells
// what can be done.
func usingPq(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool, err := sql.Open("postgres", db.DSN)
	enginetest.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	_, err = perdure.OpenSQL(t.Context(), pool, nil)
	if refused := enginetest.As[*fault.Invalid](t, err); !strings.Contains(refused.Error(), "JoinSQL") {
		t.Errorf("the error is %v", refused)
	}
	eng := db.Open(t, nil)
	return stack{
		eng: eng,
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return inTx(ctx, pool, func(own *sql.Tx) error {
				if _, err := own.ExecContext(ctx, insertNote, id); err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own, fn)
			})
		},
	}
}

// poolOf returns the application's pool. On SQLite it has the settings of the guide.
func poolOf(t *testing.T, db enginetest.Database) *sql.DB {
	t.Helper()
	if db.Name != enginetest.SQLite {
		return db.SQL(t)
	}
	file := filepath.ToSlash(strings.TrimPrefix(db.DSN, "sqlite:"))
	pool, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate")
	enginetest.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool
}

// openOn opens an engine on a pool of database/sql.
func openOn(t *testing.T, pool *sql.DB) *perdure.Engine {
	t.Helper()
	eng, err := perdure.OpenSQL(t.Context(), pool, nil)
	enginetest.NoError(t, err)
	t.Cleanup(func() { enginetest.NoError(t, eng.Close()) })
	return eng
}
