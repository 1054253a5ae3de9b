package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// maxDamages is the maximum number of problems in a file that are reported.
const maxDamages = 10

// Diagnose implements sqldb.Diagnoser.
func (db *DB) Diagnose(ctx context.Context) ([]sqldb.Diagnosis, error) {
	var version, journal string
	var sync int
	if err := db.read.QueryRowContext(ctx, "select sqlite_version()").Scan(&version); err != nil {
		return nil, fmt.Errorf("read version: %w", translate(err))
	}
	if err := db.read.QueryRowContext(ctx, "pragma journal_mode").Scan(&journal); err != nil {
		return nil, fmt.Errorf("read journal mode: %w", translate(err))
	}
	if err := db.read.QueryRowContext(ctx, "pragma synchronous").Scan(&sync); err != nil {
		return nil, fmt.Errorf("read sync mode: %w", translate(err))
	}
	file, err := db.integrity(ctx)
	return []sqldb.Diagnosis{{Name: "version", Found: "SQLite " + version}, wal(journal), db.durability(), file}, err
}

func wal(mode string) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "wal_mode", Found: "journal_mode is " + mode}
	if mode != "wal" {
		found.Problem, found.Broken = "readers and the writer wait for each other", true
	}
	return found
}

func (db *DB) durability() sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "durability", Found: "synchronous is full"}
	if db.relaxed != "" {
		found.Found, found.Problem = db.relaxed, "a power failure can lose acknowledged work"
	}
	return found
}

// integrity checks the file. A file that is too damaged to be checked is a result, not an error.
func (db *DB) integrity(ctx context.Context) (sqldb.Diagnosis, error) {
	found := sqldb.Diagnosis{Name: "integrity", Found: "ok"}
	problems, err := db.quickCheck(ctx)
	if ctx.Err() != nil {
		return found, fmt.Errorf("check file: %w", err)
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		found.Found, found.Problem, found.Broken = "damaged", strings.Join(problems, "; "), true
	}
	return found, nil
}

// quickCheck returns the first problems of the file.
func (db *DB) quickCheck(ctx context.Context) (problems []string, err error) {
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("pragma quick_check(%d)", maxDamages))
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return problems, err
		}
		if text != "ok" {
			problems = append(problems, text)
		}
	}
	return problems, rows.Err()
}
