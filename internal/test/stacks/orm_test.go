package stacks_test

import (
	"context"
	"database/sql"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Note is a row of the application.
type Note struct {
	bun.BaseModel `bun:"table:notes" gorm:"-"`

	ID   int    `bun:"id,pk"   db:"id"   gorm:"primaryKey"`
	Note string `bun:"note"    db:"note"`
}

// gormDialect returns the dialect of GORM on a pool.
func gormDialect(db enginetest.Database, pool *sql.DB) gorm.Dialector {
	switch db.Name {
	case enginetest.SQLite:
		return sqlite.New(sqlite.Config{Conn: pool})
	case enginetest.MySQL:
		return mysql.New(mysql.Config{Conn: pool})
	}
	return postgres.New(postgres.Config{Conn: pool})
}

// bunDialect returns the dialect of bun.
func bunDialect(db enginetest.Database) schema.Dialect {
	switch db.Name {
	case enginetest.SQLite:
		return sqlitedialect.New()
	case enginetest.MySQL:
		return mysqldialect.New()
	}
	return pgdialect.New()
}

// entDialects are the names of ent.
var entDialects = map[string]string{enginetest.SQLite: dialect.SQLite, enginetest.MySQL: dialect.MySQL, enginetest.Postgres: dialect.Postgres}

// sqlxDrivers are the names by which sqlx knows the placeholders of a database.
var sqlxDrivers = map[string]string{enginetest.SQLite: "sqlite3", enginetest.MySQL: "mysql", enginetest.Postgres: "pgx"}

func usingGORM(t *testing.T, db enginetest.Database, prepare bool) stack {
	t.Helper()
	pool := poolOf(t, db)
	g, err := gorm.Open(gormDialect(db, pool), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
	enginetest.NoError(t, err)
	eng := openOn(t, pool)
	in := func(tx *perdure.Tx) (*gorm.DB, error) {
		own, err := tx.SQL()
		if err != nil {
			return nil, err
		}
		session := g.WithContext(tx.Context())
		session.Statement.ConnPool = own
		return session, nil
	}
	// GORM has statements of the pool in its cache when the units run.
	var found []Note
	enginetest.NoError(t, g.Where("id = ?", -1).Find(&found).Error)
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			session, err := in(tx)
			if err != nil {
				return err
			}
			if err := session.Where("id = ?", -1).Find(&found).Error; err != nil {
				return err
			}
			return session.Create(&Note{ID: id, Note: "x"}).Error
		},
		nested: func(tx *perdure.Tx, id int) error {
			session, err := in(tx)
			if err != nil {
				return err
			}
			return session.Transaction(func(inner *gorm.DB) error {
				if err := inner.Create(&Note{ID: id, Note: "x"}).Error; err != nil {
					return err
				}
				return errMine
			})
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return g.WithContext(ctx).Transaction(func(own *gorm.DB) error {
				if err := own.Create(&Note{ID: id, Note: "x"}).Error; err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own.Statement.ConnPool, fn)
			})
		},
	}
}

func usingBun(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := poolOf(t, db)
	b := bun.NewDB(pool, bunDialect(db))
	eng := openOn(t, pool)
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			_, err = b.NewInsert().Conn(own).Model(&Note{ID: id, Note: "x"}).Exec(tx.Context())
			return err
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return b.RunInTx(ctx, nil, func(ctx context.Context, own bun.Tx) error {
				if _, err := own.NewInsert().Model(&Note{ID: id, Note: "x"}).Exec(ctx); err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own, fn)
			})
		},
	}
}

// usingEnt uses the driver that generated clients of ent take: ent.NewClient(ent.Driver(d)).
func usingEnt(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := poolOf(t, db)
	eng := openOn(t, pool)
	create := func(ctx context.Context, conn entsql.ExecQuerier, id int) error {
		driver := entsql.NewDriver(entDialects[db.Name], entsql.Conn{ExecQuerier: conn})
		query, args := entsql.Dialect(entDialects[db.Name]).Insert("notes").Columns("id", "note").Values(id, "x").Query()
		return driver.Exec(ctx, query, args, nil)
	}
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			return create(tx.Context(), own, id)
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			return inTx(ctx, pool, func(own *sql.Tx) error {
				if err := create(ctx, own, id); err != nil {
					return err
				}
				return eng.JoinSQL(ctx, own, fn)
			})
		},
	}
}

func usingSqlx(t *testing.T, db enginetest.Database) stack {
	t.Helper()
	pool := poolOf(t, db)
	x := sqlx.NewDb(pool, sqlxDrivers[db.Name])
	eng := openOn(t, pool)
	return stack{
		eng: eng,
		insert: func(tx *perdure.Tx, id int) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			query, args, err := x.BindNamed("insert into notes (id, note) values (:id, :note)", Note{ID: id, Note: "x"})
			if err != nil {
				return err
			}
			if _, err := own.ExecContext(tx.Context(), query, args...); err != nil {
				return err
			}
			var note Note
			in := &sqlx.Tx{Tx: own, Mapper: x.Mapper}
			return in.GetContext(tx.Context(), &note, x.Rebind("select id, note from notes where id = ?"), id)
		},
		joined: func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error {
			own, err := x.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer own.Rollback()
			if _, err := own.NamedExecContext(ctx, "insert into notes (id, note) values (:id, :note)", Note{ID: id, Note: "x"}); err != nil {
				return err
			}
			if err := eng.JoinSQL(ctx, own, fn); err != nil {
				return err
			}
			return own.Commit()
		},
	}
}
