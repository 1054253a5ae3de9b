// Package rotate re-encrypts the stored values after the keys have changed.
//
// It may be stopped and run again at any time, and while work continues. A value that
// another process changes concurrently is already encrypted with the new key, or a later
// run finds it.
//
// Each transaction that re-encrypts values also writes an entry of the audit log, if an
// operator has requested the rotation. A rotation that was killed therefore has entries for
// exactly the values that it has changed.
package rotate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// batch is the maximum number of rows that share a transaction.
const batch = 200

// Progress is the progress in one column.
type Progress struct {
	Column string
	// Seen is the number of values that were read, Resealed the number that were
	// re-encrypted, and Foreign the number that cannot be decrypted here.
	Seen, Resealed, Foreign int64
}

// Pending counts the values that Run would re-encrypt, and those that it could not.
func Pending(ctx context.Context, eng *perdure.Engine, report func(Progress)) ([]Progress, error) {
	return each(ctx, host.Of(eng), report, false)
}

// Run encrypts all values with the first key, including values that were never encrypted.
// report is called after each batch.
func Run(ctx context.Context, eng *perdure.Engine, report func(Progress)) ([]Progress, error) {
	if host.Of(eng).Store.Keys() == nil {
		return nil, fault.Invalidf("encryption keys", "are required")
	}
	return each(ctx, host.Of(eng), report, true)
}

func each(ctx context.Context, rt *host.Runtime, report func(Progress), change bool) ([]Progress, error) {
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

// walk scans one column.
type walk struct {
	rt       *host.Runtime
	column   store.SealedColumn
	change   bool
	progress Progress
}

// page handles the rows after a key and returns the key of the last row, or "" if there
// is none.
func (w *walk) page(ctx context.Context, after string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.rt.Timeout)
	defer cancel()
	var rows []store.SealedRow
	err := unit.Transact(ctx, w.rt.DB, sqldb.Read, func(tx sqldb.Tx) error {
		rows = nil
		return tx.Run(ctx, w.rt.Store.SealedRows(w.column, after, batch, func(r store.SealedRow) { rows = append(rows, r) }))
	})
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
	var keys map[string]int64
	err := unit.Transact(ctx, w.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		if err := tx.Run(ctx, stmts...); err != nil {
			return err
		}
		if keys = keysOf(rows, changed); len(keys) == 0 {
			return nil // other processes have changed all values
		}
		if err := w.record(ctx, tx, keys); err != nil {
			return err
		}
		return failpoint.Hit("rotate.recorded")
	})
	if err != nil {
		return err
	}
	w.progress.Resealed += sum(keys)
	return failpoint.Hit("rotate.batch")
}

// Plain is the name, in entries of the audit log, of values that were not encrypted. No
// key has this id.
const Plain = "(not encrypted)"

// Encrypted is the state in entries of the audit log: the number of values of a column that
// the transaction has re-encrypted.
type Encrypted struct {
	Column string `json:"column"`
	// Keys has the number of values for each key id: before, the keys with which they were
	// encrypted; after, the key that encrypts now.
	Keys map[string]int64 `json:"keys"`
	// Total is the number of values of the column that this run has re-encrypted, up to
	// this transaction.
	Total int64 `json:"total,omitempty"`
}

// record writes the entry for the values that a transaction has re-encrypted. keys are the
// keys with which the values were encrypted before.
func (w *walk) record(ctx context.Context, tx sqldb.Tx, keys map[string]int64) error {
	current := w.rt.Store.Keys().IDs()[0]
	before, err := json.Marshal(Encrypted{Column: w.column.Name, Keys: keys})
	if err != nil {
		return fmt.Errorf("encode entry of audit log: %w", err)
	}
	n := sum(keys)
	after, err := json.Marshal(Encrypted{Column: w.column.Name, Keys: map[string]int64{current: n}, Total: w.progress.Resealed + n})
	if err != nil {
		return fmt.Errorf("encode entry of audit log: %w", err)
	}
	return w.rt.Store.RecordPiece(ctx, tx, w.rt.Clock.Now(), audit.Target{ID: current, Before: before, After: after})
}

// keysOf counts the changed rows by key.
func keysOf(rows []store.SealedRow, changed []bool) map[string]int64 {
	keys := map[string]int64{}
	for i, row := range rows {
		if !changed[i] {
			continue
		}
		id, sealed := seal.KeyOf(row.Stored)
		if !sealed {
			id = Plain
		}
		keys[id]++
	}
	return keys
}

func sum(keys map[string]int64) (n int64) {
	for _, count := range keys {
		n += count
	}
	return n
}
