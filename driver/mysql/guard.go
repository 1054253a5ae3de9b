package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// A transaction that only locks a row does not conflict with a transaction of another node
// that locks or changes the row, even if one of them is applied while the other runs: it has
// not written the row. On a cluster, a transaction therefore also writes a guard of each row
// that it locks or changes: a row of perdure_guards. It does so directly after it has locked
// the row. What it reads afterwards is up to date: a transaction of another node that writes
// the same guard is either applied before, or one of the two is rolled back.

// guardSlots is the number of guards. Rows share them by a hash of their ids.
const guardSlots = 1 << 16

// uuids finds the ids of rows of Perdure's own tables in the values of a statement.
var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// guard has the guards that a transaction has written.
type guard struct{ written map[uint32]bool }

// run runs a statement, and writes the guards of the rows that it has locked.
func (g *guard) run(s sqldb.Stmt, exec func(sqldb.Stmt) error) error {
	if !guards(s.SQL) {
		return exec(s)
	}
	keys := keysOf(s)
	if row := s.Row; row != nil {
		s.Row = func(scan sqldb.Scan) error {
			return row(func(dest ...any) error {
				err := scan(dest...)
				keys = append(keys, scanned(dest)...)
				return err
			})
		}
	}
	if err := exec(s); err != nil {
		return err
	}
	if touch, ok := g.touch(keys); ok {
		return exec(touch)
	}
	return nil
}

// guards reports whether a statement locks rows, or changes rows of Perdure's own tables that
// other transactions may have locked.
func guards(text string) bool {
	need, locks := needsFence(text, false)
	if locks {
		return need
	}
	return need && (strings.HasPrefix(text, "update perdure_") || strings.HasPrefix(text, "update json_table") || strings.HasPrefix(text, "delete"))
}

// keysOf returns the keys of the rows that a statement locks, as far as they are among its
// values. If none of the values is an id, they are a key together, unless the statement
// searches for rows that are not locked.
func keysOf(s sqldb.Stmt) (keys []string) {
	var all strings.Builder
	for _, arg := range s.Args {
		text, ok := arg.(string)
		if !ok {
			continue
		}
		keys = append(keys, uuids.FindAllString(text, -1)...)
		fmt.Fprintf(&all, "%d %s ", len(text), text)
	}
	if len(keys) == 0 && all.Len() > 0 && strings.HasPrefix(s.SQL, "select") && !strings.Contains(s.SQL, "skip locked") {
		keys = append(keys, all.String())
	}
	return keys
}

// scanned returns the ids among the columns of a row.
func scanned(dest []any) (keys []string) {
	for _, d := range dest {
		var text string
		switch d := d.(type) {
		case *string:
			text = *d
		case **string:
			if *d != nil {
				text = **d
			}
		case *sql.NullString:
			text = d.String
		}
		if len(text) == 36 && uuids.MatchString(text) {
			keys = append(keys, text)
		}
	}
	return keys
}

// touch returns the statement that writes the guards of keys. ok is false if the transaction
// has written them before.
func (g *guard) touch(keys []string) (s sqldb.Stmt, ok bool) {
	var slots []uint32
	for _, key := range keys {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key)) // never fails
		if slot := h.Sum32() % guardSlots; !g.written[slot] {
			g.written[slot] = true
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 {
		return s, false
	}
	slices.Sort(slots) // transactions write them in the same order
	var b strings.Builder
	b.WriteString("insert into perdure_guards (slot, seq) values ")
	for i, slot := range slots {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d, 1)", slot)
	}
	b.WriteString(" on duplicate key update seq = seq + 1")
	return sqldb.Exec(b.String()), true
}

// guarded runs the statements of a unit in a transaction of a caller.
type guarded struct {
	sqldb.Runner
	guard guard
}

// Guard implements sqldb.Clustered.
func (db *DB) Guard(run sqldb.Runner) sqldb.Runner {
	if !db.dialect.Cluster {
		return run
	}
	return &guarded{Runner: run, guard: guard{written: map[uint32]bool{}}}
}

// Run implements sqldb.Runner.
func (g *guarded) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	for i, s := range stmts {
		err := g.guard.run(s, func(s sqldb.Stmt) error { return g.Runner.Run(ctx, s) })
		if err != nil {
			return at(i, err)
		}
	}
	return nil
}
