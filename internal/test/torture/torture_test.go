package torture_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
)

// backend is a kind of database that a test runs on.
type backend struct {
	name string
	// open returns the DSN of an empty database.
	open func(t testing.TB) string
}

var (
	onSQLite   = backend{"SQLite", sqliteFile}
	onPostgres = backend{"Postgres", testdb.Postgres}
	onMySQL    = backend{"MySQL", testdb.MySQL}
	servers    = []backend{onPostgres, onMySQL}
	everything = []backend{onSQLite, onPostgres, onMySQL}
)

func sqliteFile(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "torture.db")
}

// on runs a test on several kinds of databases, side by side.
func on(t *testing.T, backends []backend, test func(t *testing.T, dsn string)) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b.open(t))
		})
	}
}

// open opens an engine that is closed with the test.
func open(t testing.TB, dsn string, s *schema.Schema) *perdure.Engine {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, options(s, true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// openPooled opens an engine on a pool of the test.
func openPooled(t testing.TB, dsn string, s *schema.Schema) *perdure.Engine {
	t.Helper()
	eng, closePool, err := torture.OpenPooled(t.Context(), dsn, options(s, true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		closePool()
	})
	return eng
}

// none fails the test for every finding.
func none(t testing.TB, what string, f torture.Findings) {
	t.Helper()
	for _, finding := range f {
		t.Errorf("%s: %s", what, finding)
	}
}

// seedOf draws a seed and tells it, or takes it from PERDURE_SEED.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("PERDURE_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("PERDURE_SEED=%d", seed)
	return seed
}

// soakFactor is how much longer than usual a test shall be: PERDURE_SOAK is a
// factor, or a duration of which half a minute counts as one.
func soakFactor() float64 {
	text := os.Getenv("PERDURE_SOAK")
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 {
		return f
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return max(d.Seconds()/30, 1)
	}
	return 1
}

func longer(d time.Duration) time.Duration { return time.Duration(float64(d) * soakFactor()) }

func times(n int) int { return int(float64(n) * soakFactor()) }

// joinSQL joins transactions of database/sql.
func joinSQL(db *sql.DB) torture.Join {
	return func(ctx context.Context, eng *perdure.Engine, rollback bool, fn func(*perdure.Tx) error) error {
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := eng.JoinSQL(ctx, tx, fn); err != nil {
			return err
		}
		return finish(rollback, func() error { return tx.Commit() })
	}
}

// joinPgx joins transactions of pgx.
func joinPgx(pool *pgxpool.Pool) torture.Join {
	return func(ctx context.Context, eng *perdure.Engine, rollback bool, fn func(*perdure.Tx) error) error {
		background := context.WithoutCancel(ctx)
		tx, err := pool.Begin(background)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(background) }()
		if err := eng.JoinPgx(ctx, tx, fn); err != nil {
			return err
		}
		return finish(rollback, func() error { return tx.Commit(background) })
	}
}

func finish(rollback bool, commit func() error) error {
	if rollback {
		return torture.ErrRolledBack
	}
	if err := commit(); err != nil {
		return &fault.Uncertain{Err: err}
	}
	return nil
}

func options(s *schema.Schema, box bool) *perdure.Options {
	return &perdure.Options{Outbox: box, Schemas: []*schema.Schema{s}}
}

// TestMain is also the main function of the children.
func TestMain(m *testing.M) {
	torture.Main(map[string]torture.Role{
		"writeLedger":      writeLedger,
		"acknowledgeFirst": acknowledgeFirst,
		"losePower":        losePower,
		"migrateAndWrite":  migrateAndWrite,
		"runHooks":         runHooks,
		"writeMixed":       writeMixed,
		"runRecorders":     runRecorders,
	})
	testdb.Main(m)
}
