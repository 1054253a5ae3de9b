package perdure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/schema"
)

// migrateTimeout bounds the wait for a migration by another process together with this
// process's own migration.
const migrateTimeout = 5 * time.Minute

// prepare brings the database up to date, or checks that it is.
func (e *Engine) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if e.options.NoMigrate {
		return e.checkMigrated(ctx)
	}
	return e.migrate(ctx)
}

// migrate applies missing migrations while it holds a lock that excludes all other
// processes. An up-to-date database is not locked: a process that starts waits for a lock
// only if there is something to migrate.
func (e *Engine) migrate(ctx context.Context) error {
	if complete, err := e.complete(ctx); err != nil || complete {
		return err
	}
	err := e.db.Exclusively(ctx, func(run sqldb.Runner) (err error) {
		if e.migrated, err = e.store.Migrate(ctx, run, e.options.Clock.Now()); err != nil {
			return err
		}
		return e.migrateSchemas(ctx, run)
	})
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// complete reports whether the database has all migrations and all schemas. It only
// reads. If a read fails, for example because a table is missing, the database is
// incomplete.
func (e *Engine) complete(ctx context.Context) (bool, error) {
	tx, err := e.db.Begin(ctx, sqldb.Read)
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	defer tx.Rollback()
	pending, err := e.store.Pending(ctx, tx)
	if err != nil || len(pending) > 0 {
		return false, nil //nolint:nilerr // the migration meets the same error, and reports it
	}
	recorded := map[string]string{}
	list := e.store.Schemas(func(name, description string) error {
		recorded[name] = description
		return nil
	})
	if err := tx.Run(ctx, list); err != nil {
		return false, nil //nolint:nilerr // as above
	}
	for _, s := range e.options.Schemas {
		description, err := json.Marshal(s)
		if err != nil || recorded[s.Name()] != string(description) {
			return false, nil //nolint:nilerr // as above
		}
	}
	ledger, err := e.ledger(ctx, tx)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	if missing, err := e.tables.Missing(ctx, tx, ledger, e.options.Schemas...); err != nil || missing {
		return false, nil //nolint:nilerr // as above
	}
	e.migrated, err = e.store.Complete()
	return true, err
}

// ledger reads which described tables Perdure has made.
func (e *Engine) ledger(ctx context.Context, run sqldb.Runner) (table.Ledger, error) {
	ledger := table.Ledger{Made: map[string]bool{}, Record: func(t *schema.Table) sqldb.Stmt {
		return e.store.AddTable(t.Schema().Name(), t.Name(), e.options.Clock.Now())
	}}
	err := run.Run(ctx, e.store.Tables(func(schemaName, tableName string) { ledger.Made[table.Key(schemaName, tableName)] = true }))
	return ledger, err
}

func (e *Engine) migrateSchemas(ctx context.Context, run sqldb.Runner) error {
	ledger, err := e.ledger(ctx, run)
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	if err := e.tables.Migrate(ctx, run, ledger, e.options.Schemas...); err != nil {
		return err
	}
	for _, s := range e.options.Schemas {
		description, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("describe schema %s: %w", s.Name(), err)
		}
		if err := run.Run(ctx, e.store.SetSchema(s.Name(), string(description), e.options.Clock.Now())...); err != nil {
			return fmt.Errorf("record schema %s: %w", s.Name(), err)
		}
	}
	return nil
}

func (e *Engine) checkMigrated(ctx context.Context) error {
	tx, err := e.db.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	pending, err := e.store.Pending(ctx, tx)
	if sqldb.IsTransient(err) || ctx.Err() != nil {
		return err
	}
	if err != nil { // usually the table of migrations does not exist yet
		return fmt.Errorf("%w: %w", fault.ErrNotMigrated, err)
	}
	if len(pending) > 0 {
		return fmt.Errorf("%w: %d migrations are pending", fault.ErrNotMigrated, len(pending))
	}
	return nil
}

// MigrationScript returns the SQL that creates Perdure's own tables, to be reviewed or
// run manually. dsn selects the kind of database.
func MigrationScript(dsn string) (string, error) {
	scheme, _, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		return store.Script(sqldb.Dialect{Name: sqldb.SQLite})
	case "postgres", "postgresql":
		return store.Script(sqldb.Dialect{Name: sqldb.Postgres})
	case "mysql":
		return store.Script(sqldb.Dialect{Name: sqldb.MySQL, Collation: "utf8mb4_0900_bin"})
	case "mariadb":
		return store.Script(sqldb.Dialect{Name: sqldb.MySQL, Collation: "utf8mb4_nopad_bin"})
	}
	return "", fault.Invalidf("database URL", "must start with sqlite:, postgres:// or mysql://")
}
