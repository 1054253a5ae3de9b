package stacks_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/stacks/sqlcpgx"
)

// The functions of this file are shown in docs/guide/existing-application.md.

// Jobs are the jobs of the application.
type Jobs struct {
	eng     *perdure.Engine
	worker  *dispatch.Poller
	Publish *hook.Hook[int32]
}

func newJobs(eng *perdure.Engine, publish func(ctx context.Context, note int32) error) (*Jobs, error) {
	hooks, err := hook.New(eng, "notes", nil)
	if err != nil {
		return nil, err
	}
	defined, err := hook.Define(hooks, "publish", publish, nil)
	if err != nil {
		return nil, err
	}
	worker, err := dispatch.NewPoller(hooks, nil)
	if err != nil {
		return nil, err
	}
	worker.Start()
	return &Jobs{eng: eng, worker: worker, Publish: defined}, nil
}

func (j *Jobs) close(ctx context.Context) error {
	if err := j.worker.Stop(ctx); err != nil { // waits for running jobs
		return err
	}
	return j.eng.Close() // the pool stays open
}

func openPgx(ctx context.Context, pool *pgxpool.Pool, publish func(context.Context, int32) error) (*Jobs, error) {
	eng, err := perdure.OpenPgx(ctx, pool, nil)
	if err != nil {
		return nil, err
	}
	return newJobs(eng, publish)
}

func createWithSqlc(ctx context.Context, jobs *Jobs, queries *sqlcpgx.Queries, id int32) error {
	return jobs.eng.Update(ctx, func(tx *perdure.Tx) error {
		own, err := tx.Pgx()
		if err != nil {
			return err
		}
		if _, err := queries.WithTx(own).CreateNote(ctx, sqlcpgx.CreateNoteParams{ID: id, Note: "hello"}); err != nil {
			return err
		}
		_, err = jobs.Publish.TriggerIn(tx, id, nil)
		return err
	})
}

func joinPgx(ctx context.Context, jobs *Jobs, pool *pgxpool.Pool, id int32) error {
	own, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer own.Rollback(ctx)
	if _, err := own.Exec(ctx, "insert into notes (id, note) values ($1, 'hello')", id); err != nil {
		return err
	}
	err = jobs.eng.JoinPgx(ctx, own, func(tx *perdure.Tx) error {
		_, err := jobs.Publish.TriggerIn(tx, id, nil)
		return err
	})
	if err != nil {
		return err
	}
	return own.Commit(ctx)
}

func openSQL(ctx context.Context, db *sql.DB, publish func(context.Context, int32) error) (*Jobs, error) {
	eng, err := perdure.OpenSQL(ctx, db, nil)
	if err != nil {
		return nil, err
	}
	return newJobs(eng, publish)
}

func createWithSQL(ctx context.Context, jobs *Jobs, id int32) error {
	return jobs.eng.Update(ctx, func(tx *perdure.Tx) error {
		own, err := tx.SQL()
		if err != nil {
			return err
		}
		if _, err := own.ExecContext(ctx, "insert into notes (id, note) values ($1, 'hello')", id); err != nil {
			return err
		}
		_, err = jobs.Publish.TriggerIn(tx, id, nil)
		return err
	})
}

// inUnit returns a session of GORM in the transaction of a unit.
func inUnit(g *gorm.DB, tx *perdure.Tx) (*gorm.DB, error) {
	own, err := tx.SQL()
	if err != nil {
		return nil, err
	}
	session := g.WithContext(tx.Context())
	session.Statement.ConnPool = own
	return session, nil
}

func createWithGORM(ctx context.Context, jobs *Jobs, g *gorm.DB, id int32) error {
	return jobs.eng.Update(ctx, func(tx *perdure.Tx) error {
		session, err := inUnit(g, tx)
		if err != nil {
			return err
		}
		if err := session.Create(&Note{ID: int(id), Note: "hello"}).Error; err != nil {
			return err
		}
		_, err = jobs.Publish.TriggerIn(tx, id, nil)
		return err
	})
}

func joinGORM(ctx context.Context, jobs *Jobs, g *gorm.DB, id int32) error {
	return g.WithContext(ctx).Transaction(func(own *gorm.DB) error {
		if err := own.Create(&Note{ID: int(id), Note: "hello"}).Error; err != nil {
			return err
		}
		return jobs.eng.JoinSQL(ctx, own.Statement.ConnPool, func(tx *perdure.Tx) error {
			_, err := jobs.Publish.TriggerIn(tx, id, nil)
			return err
		})
	})
}

func createWithBun(ctx context.Context, jobs *Jobs, b *bun.DB, id int32) error {
	return jobs.eng.Update(ctx, func(tx *perdure.Tx) error {
		own, err := tx.SQL()
		if err != nil {
			return err
		}
		if _, err := b.NewInsert().Conn(own).Model(&Note{ID: int(id), Note: "hello"}).Exec(ctx); err != nil {
			return err
		}
		_, err = jobs.Publish.TriggerIn(tx, id, nil)
		return err
	})
}

// The functions of the guide do what it says.
func TestTheGuideRuns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := enginetest.New(t, enginetest.Postgres)
	db.Exec(t, "create table notes (id integer primary key, note text)")
	published := make(chan int32, 10)
	publish := func(_ context.Context, id int32) error {
		published <- id
		return nil
	}
	pool, std := db.Pgx(t, nil), db.SQL(t)
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: std}), &gorm.Config{PrepareStmt: true, Logger: logger.Discard})
	enginetest.NoError(t, err)
	b := bun.NewDB(std, pgdialect.New())
	onPgx, err := openPgx(ctx, pool, publish)
	enginetest.NoError(t, err)
	enginetest.NoError(t, createWithSqlc(ctx, onPgx, sqlcpgx.New(pool), 1))
	enginetest.NoError(t, joinPgx(ctx, onPgx, pool, 2))
	awaitIDs(t, published, 1, 2)
	enginetest.NoError(t, onPgx.close(ctx))
	onSQL, err := openSQL(ctx, std, publish)
	enginetest.NoError(t, err)
	enginetest.NoError(t, createWithSQL(ctx, onSQL, 3))
	enginetest.NoError(t, createWithGORM(ctx, onSQL, g, 4))
	enginetest.NoError(t, joinGORM(ctx, onSQL, g, 5))
	enginetest.NoError(t, createWithBun(ctx, onSQL, b, 6))
	awaitIDs(t, published, 3, 4, 5, 6)
	enginetest.NoError(t, onSQL.close(ctx))
	enginetest.NoError(t, pool.Ping(ctx))
	enginetest.NoError(t, std.PingContext(ctx))
	if n := db.Int(t, "select count(*) from notes"); n != 6 {
		t.Errorf("there are %d notes", n)
	}
}

// The program of the README on every database: the application's pool, its table, its
// transaction, and a job that runs after the commit.
func TestTheProgramOfTheReadmeRunsOnEveryDatabase(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		ctx := t.Context()
		db.Exec(t, "create table notes (id integer primary key, note text)")
		published := make(chan int32, 10)
		pool := poolOf(t, db)
		jobs, err := openSQL(ctx, pool, func(_ context.Context, id int32) error {
			published <- id
			return nil
		})
		enginetest.NoError(t, err)
		err = inTx(ctx, pool, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "insert into notes (id, note) values (1, 'hello')"); err != nil {
				return err
			}
			return jobs.eng.JoinSQL(ctx, tx, func(tx *perdure.Tx) error {
				_, err := jobs.Publish.TriggerIn(tx, 1, nil)
				return err
			})
		})
		enginetest.NoError(t, err)
		awaitIDs(t, published, 1)
		enginetest.NoError(t, jobs.close(ctx))
		if n := db.Int(t, "select count(*) from notes"); n != 1 {
			t.Errorf("there are %d notes", n)
		}
	})
}

// awaitIDs waits until jobs have run for all ids.
func awaitIDs(t *testing.T, published <-chan int32, ids ...int32) {
	t.Helper()
	want := map[int32]bool{}
	for _, id := range ids {
		want[id] = true
	}
	for len(want) > 0 {
		select {
		case id := <-published:
			delete(want, id)
		case <-enginetest.Context(t).Done():
			t.Fatalf("no job ran for %v", want)
		}
	}
}
