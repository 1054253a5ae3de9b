// Package rotate encrypts what is stored again, after the keys have changed.
//
// It may be stopped and run again at any time, and while work goes on: a value that
// somebody has changed meanwhile is sealed with the new key already, or is met
// again.
//
// Imports: perdure, fault and internal packages below them.
package rotate

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// batch is how many rows share a transaction.
const batch = 200

// Progress is what was done so far in a column.
type Progress struct {
	Column string
	// Seen is how many values were looked at, Resealed how many of them were
	// encrypted again, Foreign how many there is no key for here.
	Seen, Resealed, Foreign int64
}

// Pending counts the values that Run would encrypt again, and those that it could
// not.
func Pending(ctx context.Context, eng *perdure.Engine, report func(Progress)) ([]Progress, error) {
	return each(ctx, eng.Runtime(), report, false)
}

// Run seals everything with the key that seals now, what was never sealed too.
// report is told of each batch.
func Run(ctx context.Context, eng *perdure.Engine, report func(Progress)) ([]Progress, error) {
	if eng.Runtime().Store.Keys() == nil {
		return nil, fault.Invalidf("encryption keys", "are not set")
	}
	return each(ctx, eng.Runtime(), report, true)
}

func each(ctx context.Context, rt *perdure.Runtime, report func(Progress), change bool) ([]Progress, error) {
	var all []Progress
	for _, column := range rt.Store.SealedColumns() {
		w := walk{rt: rt, column: column, change: change, progress: Progress{Column: column.Name}}
		for after := ""; ; {
			last, err := w.page(ctx, after)
			if err != nil {
				return all, fmt.Errorf("rotate %s: %w", column.Name, err)
			}
			report(w.progress)
			if last == "" {
				break
			}
			after = last
		}
		all = append(all, w.progress)
	}
	return all, nil
}

// walk goes through one column.
type walk struct {
	rt       *perdure.Runtime
	column   store.SealedColumn
	change   bool
	progress Progress
}

// page handles the rows after a key and returns the key of the last one, "" if
// there are no more.
func (w *walk) page(ctx context.Context, after string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.rt.Timeout)
	defer cancel()
	var rows []store.SealedRow
	err := w.run(ctx, sqldb.Read, w.rt.Store.SealedRows(w.column, after, batch, func(r store.SealedRow) { rows = append(rows, r) }))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	if err := w.reseal(ctx, rows); err != nil {
		return "", err
	}
	return rows[len(rows)-1].Key, nil
}

func (w *walk) reseal(ctx context.Context, rows []store.SealedRow) error {
	changed := make([]bool, len(rows))
	var stmts []sqldb.Stmt
	for i, row := range rows {
		w.progress.Seen++
		if w.rt.Store.Keys().Current(row.Stored) {
			continue
		}
		stmt, err := w.rt.Store.Reseal(w.column, row, &changed[i])
		var sealed *seal.SealedError
		switch {
		case errors.As(err, &sealed):
			w.progress.Foreign++
			continue
		case err != nil:
			return err
		}
		stmts = append(stmts, stmt)
	}
	if !w.change {
		w.progress.Resealed += int64(len(stmts))
		return nil
	}
	if len(stmts) == 0 {
		return nil
	}
	if err := w.run(ctx, sqldb.Write, stmts...); err != nil {
		return err
	}
	for _, c := range changed {
		if c {
			w.progress.Resealed++
		}
	}
	return nil
}

// maxAttempts is how often a batch is tried that met other transactions.
const maxAttempts = 5

func (w *walk) run(ctx context.Context, access sqldb.Access, stmts ...sqldb.Stmt) error {
	for attempt := 1; ; attempt++ {
		err := w.attempt(ctx, access, stmts)
		if err == nil || !sqldb.IsTransient(err) || attempt == maxAttempts || ctx.Err() != nil {
			return err
		}
	}
}

func (w *walk) attempt(ctx context.Context, access sqldb.Access, stmts []sqldb.Stmt) error {
	tx, err := w.rt.DB.Begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, stmts...); err != nil || access == sqldb.Read {
		return err
	}
	return tx.Commit(ctx)
}
