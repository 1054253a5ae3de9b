package flow

import (
	"slices"

	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
)

// undoneKey is the key of the row that is written at the end of compensation, and of every function
// that was cancelled. A run finds it only after Machines.Retry: then the steps have no effect any
// more, and must run again.
const undoneKey = undoMark + generationKey

// undone records that compensation is complete. The lock must be held.
func (r *root) undone() {
	if !r.compensated && !r.cancelled {
		return
	}
	now := r.session.Clock().Now()
	r.record(store.JournalRow{Key: undoneKey, Kind: store.JournalUndo, Attempt: 1, Began: now, Ended: now})
}

// reopened returns the rows of a journal that are valid. After complete compensation, the waits and
// values are: their signals were consumed. The steps are not, and have new keys. The journal is
// replaced with the next commit. Calls are matched by name, because rows are missing between others.
func (r *root) reopened(rows []store.JournalRow) []store.JournalRow {
	if !slices.ContainsFunc(rows, func(row store.JournalRow) bool { return row.Key == undoneKey }) {
		return rows
	}
	start := store.JournalRow{Key: generationKey, Kind: store.JournalValue, Attempt: 1, Result: new(`"retried"`), Began: r.now(), Ended: r.now()}
	var valid []store.JournalRow
	for _, row := range rows {
		switch row.Kind {
		case store.JournalWait, store.JournalWoken, store.JournalChild:
			valid = append(valid, row)
		case store.JournalValue:
			if row.Key == generationKey {
				start.Attempt = row.Attempt + 1
			} else {
				valid = append(valid, row)
			}
		case store.JournalStep, store.JournalTx, store.JournalFailure, store.JournalUndo, store.JournalOnce:
		}
	}
	valid = append([]store.JournalRow{start}, valid...)
	r.pending = journal.Progress{Reset: true, Rows: slices.Clone(valid)}
	return valid
}
