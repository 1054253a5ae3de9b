// Package torture puts a database with Perdure on it under load and faults and
// then looks for a broken promise.
//
// It has four parts, which later kinds of work (hooks, machines, tasks) use
// with workloads of their own:
//
//   - writers: a Load runs units of work, good and bad, from many goroutines
//     and engines; a Ledger runs them in a process that will be killed;
//   - memory: a History holds what each unit was told, a Journal holds it on
//     disk, written before anybody relies on it;
//   - nemesis: a CrashLoop starts this program again in a role of its own and
//     kills it, over and over;
//   - audits: checks that compare what was told with what the database has.
//     They read by SQL only and share no state with the writers.
//
// An audit returns its findings as sentences, each of which begins with the
// rule that is broken. The rules are C1 to C7 of the checker:
//
//	C1  stamps are dense in every snapshot
//	C2  nothing arrives below what was already visible
//	C3  replay of the entries gives the tables
//	C4  acknowledged before another began means a smaller stamp
//	C5  acknowledged: exactly one entry; failed: none; unknown: all or nothing
//	C7  the mutations of an entry are numbered 0, 1, 2…
//
// Only the torture command and tests import this package. It imports the root
// package, outbox, schema, fault, the drivers and internal/{clock,sqldb,table}.
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

// OpenDB opens the database below the engine, for audits that must not depend
// on the engine being right.
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

// maxFindings bounds a list of findings: the first ones tell enough.
const maxFindings = 50

// Findings are broken promises, in words. Empty is good.
type Findings []string

// add appends a finding under the rule that is broken.
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
