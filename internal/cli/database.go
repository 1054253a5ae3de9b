package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
)

// errNotEmpty is the error for a database whose data a command would mix with its own.
var errNotEmpty = errors.New("the outbox of the database has entries")

// database returns the database URL.
func (a *app) database() (string, error) {
	if a.dsn == "" {
		return "", usagef("database is required: set --dsn or PERDURE_DATABASE_URL (example: sqlite:app.db)")
	}
	return a.dsn, nil
}

// view runs fn on a database that must exist and be migrated. A command that only reads or
// tidies up must not change tables.
func (a *app) view(ctx context.Context, fn func(*perdure.Engine) error) error {
	dsn, err := a.database()
	if err != nil {
		return err
	}
	if err := mustExist(dsn); err != nil {
		return err
	}
	ring, err := a.ring()
	if err != nil {
		return err
	}
	eng, err := perdure.Open(ctx, dsn, &perdure.Options{NoMigrate: true, Keys: ring})
	if err != nil {
		return err
	}
	return errors.Join(fn(eng), eng.Close())
}

// mustExist refuses a missing SQLite file, which opening would create.
func mustExist(dsn string) error {
	path, ok := sqliteFile(dsn)
	if !ok {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return nil
}

// sqliteFile returns the file of an SQLite URL, if it has one.
func sqliteFile(dsn string) (string, bool) {
	rest, ok := strings.CutPrefix(dsn, "sqlite:")
	path, _, _ := strings.Cut(rest, "?")
	path = strings.TrimPrefix(path, "//")
	return path, ok && path != "" && path != ":memory:"
}

// makeDirectory creates the directory of an SQLite file.
func makeDirectory(dsn string) error {
	path, ok := sqliteFile(dsn)
	if !ok {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create directory of database: %w", err)
	}
	return nil
}

// redacted returns a database URL without its secrets, for output.
func redacted(dsn string) string {
	if strings.HasPrefix(dsn, "sqlite:") {
		return dsn
	}
	u, err := url.Parse(dsn)
	if err != nil {
		scheme, _, _ := strings.Cut(dsn, ":")
		return scheme + ":…"
	}
	query := u.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "password") {
			query.Set(name, "xxxxx")
		}
	}
	u.RawQuery = query.Encode()
	return u.Redacted()
}
