// Package torture runs load and faults on a database with Perdure, and then looks for
// violated guarantees.
//
// It has four parts. Other kinds of work (hooks, machines, tasks) can use them with their
// own workloads:
//
//   - writers: a Load runs units of work, good and bad, from many goroutines
//     and engines; a Ledger runs them in a process that will be killed;
//   - records: a History holds the outcome of each unit, a Journal holds it on
//     disk, written before any part of the test relies on it;
//   - nemesis: a CrashLoop repeatedly starts this program again in its own role
//     and kills it;
//   - audits: checks that compare the recorded outcomes with the database.
//     They read only by SQL and share no state with the writers.
//
// An audit returns its findings as sentences, each of which starts with the violated rule.
// The rules are C1 to C7 of the checker:
//
//	C1  stamps are dense in every snapshot
//	C2  nothing arrives below what was already visible
//	C3  replay of the entries gives the tables
//	C4  acknowledged before another began means a smaller stamp
//	C5  acknowledged: exactly one entry; failed: none; unknown: all or nothing
//	C7  the mutations of an entry are numbered 0, 1, 2…
//
// Only the torture command and tests import this package.
package torture

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/internal/sqldb"
)

// OpenDB opens the database below the engine, for audits that must not depend on the
// correctness of the engine.
func OpenDB(ctx context.Context, dsn string) (sqldb.DB, error) {
	scheme, _, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		return sqlite.Open(ctx, dsn)
	case "postgres", "postgresql":
		return postgres.Open(ctx, dsn)
	case "mysql", "mariadb":
		return mysql.Open(ctx, dsn)
	}
	return nil, fmt.Errorf("open database: unknown scheme %q", scheme)
}

// maxFindings bounds a list of findings: the first ones are sufficient.
const maxFindings = 50

// Findings are violated guarantees, in words. An empty list is a success.
type Findings []string

// add appends a finding under the violated rule.
func (f *Findings) add(rule, format string, args ...any) {
	if len(*f) < maxFindings {
		*f = append(*f, rule+": "+fmt.Sprintf(format, args...))
	}
}

// Err returns the findings as one error, nil if there are none.
func (f Findings) Err() error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%d findings:\n  %s", len(f), strings.Join(f, "\n  "))
}
