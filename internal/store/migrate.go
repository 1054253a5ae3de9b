package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

//go:embed migration
var migrationFiles embed.FS

// Migration is one numbered step of the schema of Perdure's own tables.
type Migration struct {
	Version    int
	Name       string
	Statements []string
	Checksum   string
}

// bootstrap creates the table in which migrations are recorded.
var bootstrap = map[string][]string{
	sqldb.Postgres: sqldb.PostgresMigrations,
	sqldb.SQLite: {
		"create table if not exists perdure_migrations (version integer primary key, name text not null, checksum text not null, applied_at integer not null) strict",
	},
	sqldb.MySQL: {
		"create table if not exists perdure_migrations (version int primary key, name varchar(128) not null, checksum varchar(64) not null, applied_at datetime(6) not null) engine=InnoDB",
	},
}

// Migrations returns the steps of a dialect in order: its own steps and the steps of
// migration/common, which are templates like the statements in sql/common. A step may consist
// of several files with the same number, which are applied in the order of their names. The
// caller must not change the result.
func Migrations(d sqldb.Dialect) ([]Migration, error) {
	return readSteps.get([2]string{d.Name, d.Collation}, func() ([]Migration, error) { return readMigrations(d) })
}

// readSteps caches the steps of the dialects by name and collation.
var readSteps memo[[2]string, []Migration]

func readMigrations(d sqldb.Dialect) ([]Migration, error) {
	files, err := fs.Glob(migrationFiles, path.Join("migration", d.Name, "*.sql"))
	if err != nil {
		return nil, err
	}
	shared, err := fs.Glob(migrationFiles, "migration/common/*.sql")
	if err != nil {
		return nil, err
	}
	files = append(files, shared...)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	var steps []Migration
	for _, file := range files {
		step, err := readMigration(d, file)
		if err != nil {
			return nil, err
		}
		if last := len(steps) - 1; last >= 0 && steps[last].Version == step.Version {
			steps[last] = steps[last].join(step)
			continue
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// join appends another file of the same step.
func (m Migration) join(next Migration) Migration {
	sum := sha256.Sum256([]byte(m.Checksum + next.Checksum))
	m.Statements, m.Checksum = append(m.Statements, next.Statements...), hex.EncodeToString(sum[:])
	return m
}

func readMigration(d sqldb.Dialect, file string) (Migration, error) {
	content, err := migrationFiles.ReadFile(file)
	if err != nil {
		return Migration{}, err
	}
	number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return Migration{}, fmt.Errorf("parse migration name %q: %w", file, err)
	}
	sum := sha256.Sum256(content)
	text := string(content)
	if path.Base(path.Dir(file)) == "common" {
		text = localize(d, unmarked(d, text))
	}
	text = strings.ReplaceAll(text, "{collation}", d.Collation)
	return Migration{Version: version, Name: name, Statements: split(text), Checksum: hex.EncodeToString(sum[:])}, nil
}

// split splits a script into its statements, at semicolons that end a line and are not inside a
// $$ body.
func split(script string) []string {
	var statements []string
	var current strings.Builder
	inBody := false
	for _, line := range strings.Split(script, "\n") {
		if !inBody && strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		if strings.Count(line, "$$")%2 == 1 {
			inBody = !inBody
		}
		current.WriteString(line + "\n")
		if !inBody && strings.HasSuffix(strings.TrimRight(line, " "), ";") {
			statements = append(statements, strings.TrimSuffix(strings.TrimSpace(current.String()), ";"))
			current.Reset()
		}
	}
	return statements
}

// Script returns all migrations as a script that can be run manually, including the record of
// each migration.
func Script(d sqldb.Dialect) (string, error) {
	steps, err := Migrations(d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range bootstrap[d.Name] {
		fmt.Fprintf(&b, "%s;\n\n", s)
	}
	for _, m := range steps {
		fmt.Fprintf(&b, "-- %04d %s\n\n%s;\n\n", m.Version, m.Name, strings.Join(m.Statements, ";\n\n"))
		fmt.Fprintf(&b, localize(d, "insert into perdure.migrations (version, name, checksum, applied_at) values (%d, '%s', '%s', %s);\n\n"), m.Version, m.Name, m.Checksum, d.Now())
	}
	return b.String(), nil
}

// Migrated is the result of a migration: the versions before and after. From is 0 for a
// database without a version.
type Migrated struct{ From, To int }

// Migrate applies the missing steps. The runner must have exclusive access to the migrations.
func (s *Store) Migrate(ctx context.Context, run sqldb.Runner, now time.Time) (Migrated, error) {
	for _, text := range bootstrap[s.dialect.Name] {
		if err := run.Run(ctx, sqldb.Exec(text)); err != nil {
			return Migrated{}, fmt.Errorf("prepare migrations: %w", err)
		}
	}
	pending, err := s.Pending(ctx, run)
	if err != nil {
		return Migrated{}, err
	}
	for _, m := range pending {
		if err := s.apply(ctx, run, m, now); err != nil {
			return Migrated{}, fmt.Errorf("apply migration %d (%s): %w", m.Version, m.Name, err)
		}
	}
	return s.migrated(len(pending))
}

// Complete returns the versions of a database that has all steps.
func (s *Store) Complete() (Migrated, error) { return s.migrated(0) }

// migrated returns the result of applying the last n steps.
func (s *Store) migrated(n int) (Migrated, error) {
	steps, err := Migrations(s.dialect)
	if err != nil {
		return Migrated{}, err
	}
	done := Migrated{To: steps[len(steps)-1].Version}
	if before := len(steps) - n; before > 0 {
		done.From = steps[before-1].Version
	}
	return done, nil
}

func (s *Store) apply(ctx context.Context, run sqldb.Runner, m Migration, now time.Time) error {
	for _, text := range m.Statements {
		if err := run.Run(ctx, sqldb.Exec(text)); err != nil {
			return err
		}
	}
	return run.Run(ctx, s.stmt("MigrationInsert", m.Version, m.Name, m.Checksum, now))
}

// errNewer is the cause of Pending's error if the database has all steps of this release and
// further ones.
var errNewer = errors.New("which this release does not know: use a newer release")

// Missing returns the number of steps that are not applied. In contrast to Pending, steps of
// later releases are not an error: a process continues when a later release migrates its
// database.
func (s *Store) Missing(ctx context.Context, run sqldb.Runner) (int, error) {
	pending, err := s.Pending(ctx, run)
	if errors.Is(err, errNewer) {
		return 0, nil
	}
	return len(pending), err
}

// Pending returns the steps that are not applied. It returns an error if a later release
// migrated the database, or if an applied step has changed.
func (s *Store) Pending(ctx context.Context, run sqldb.Runner) ([]Migration, error) {
	steps, err := Migrations(s.dialect)
	if err != nil {
		return nil, err
	}
	applied := 0
	list := s.stmt("MigrationList")
	list.Row = func(scan sqldb.Scan) error {
		var version int
		var checksum string
		if err := scan(&version, &checksum); err != nil {
			return err
		}
		if applied < len(steps) && steps[applied].Version < version && known(steps, version) {
			return fmt.Errorf("database has migration %d but not %d, which comes before it: it was migrated by a build between two releases, and cannot be migrated further", version, steps[applied].Version)
		}
		if applied >= len(steps) {
			return fmt.Errorf("database has migration %d, %w", version, errNewer)
		}
		if steps[applied].Version != version {
			return fmt.Errorf("database has migration %d, which this release does not know: use a newer release", version)
		}
		if steps[applied].Checksum != checksum {
			return fmt.Errorf("migration %d in the database differs from the one of this release", version)
		}
		applied++
		return nil
	}
	if err := run.Run(ctx, list); err != nil {
		return nil, fmt.Errorf("read applied migrations: %w", err)
	}
	return steps[applied:], nil
}

// known reports whether a release has a migration.
func known(steps []Migration, version int) bool {
	return slices.ContainsFunc(steps, func(m Migration) bool { return m.Version == version })
}
