package unit

import (
	"context"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
)

// acts returns the acts of all units. It returns none on a database without an audit log.
func (w Writer) acts(units []*Unit) (acts []*audit.Act) {
	if !w.Store.HasAudit() {
		return nil
	}
	for _, u := range units {
		acts = append(acts, u.Acts...)
	}
	return acts
}

// recording returns the statements that append the entries of acts to the claimed audit
// chain. The statements of the acts have run.
func (w Writer) recording(ctx context.Context, run sqldb.Runner, acts []*audit.Act, head audit.Head) ([]sqldb.Stmt, error) {
	var entries []audit.Entry
	for _, a := range acts {
		entries = append(entries, a.Entries()...)
	}
	return w.Store.RecordEntries(ctx, run, entries, head)
}
