package sqlite

import (
	"context"
	"fmt"

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

func (db *DB) integrity(ctx context.Context) (sqldb.Diagnosis, error) {
	found := sqldb.Diagnosis{Name: "integrity", Found: "ok"}
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("pragma quick_check(%d)", maxDamages))
	if err != nil {
		return found, fmt.Errorf("check file: %w", translate(err))
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return found, fmt.Errorf("check file: %w", err)
		}
		if text != "ok" {
			found.Found, found.Problem, found.Broken = "damaged", found.Problem+text+"; ", true
		}
	}
	return found, rows.Err()
}
