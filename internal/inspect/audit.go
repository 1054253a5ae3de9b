package inspect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// AuditFilter filters the entries of the audit log.
type AuditFilter = store.AuditFilter

// Audit returns entries of the audit log, newest first, and the cursor of the next
// page, which is empty after the last one.
func (i *Inspector) Audit(ctx context.Context, f AuditFilter, cursor string, limit int) (entries []audit.Entry, next string, err error) {
	if f.Target != "" && f.Kind == "" { // no index serves it
		return nil, "", fault.Invalidf("target", "must have a kind")
	}
	list := i.rt.Store.ListAudit(f, cursor, limit+1, func(e audit.Entry) { entries = append(entries, e) })
	if err := i.read(ctx, list); err != nil {
		return nil, "", fmt.Errorf("list audit log: %w", err)
	}
	if len(entries) > limit {
		entries = entries[:limit]
		next = entries[limit-1].ID
	}
	return entries, next, nil
}

// trimBatch is the maximum number of entries that one transaction removes.
const trimBatch = 1000

// TrimAudit removes entries of the audit log that are older than age and returns their
// number. The remaining entries can still be verified: each chain keeps the hash of its
// last removed entry, and a new entry records the removal.
func (i *Inspector) TrimAudit(ctx context.Context, age time.Duration) (removed int64, err error) {
	var used []int
	heads := i.rt.Store.AuditChains(func(h audit.Head) {
		if h.Seq > h.BaseSeq {
			used = append(used, h.Chain)
		}
	})
	if err := i.read(ctx, heads); err != nil {
		return 0, fmt.Errorf("trim audit log: %w", err)
	}
	for _, chain := range used {
		for {
			n, err := i.trimChain(ctx, chain, i.rt.Clock.Now().Add(-age))
			removed += n
			if err != nil {
				return removed, fmt.Errorf("trim audit log: %w", err)
			}
			if n < trimBatch {
				break
			}
		}
	}
	return removed, nil
}

// trimChain removes up to trimBatch entries of a chain that are older than before. It skips
// a chain that another transaction has locked; the next call trims it.
func (i *Inspector) trimChain(ctx context.Context, chain int, before time.Time) (removed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, i.rt.Timeout)
	defer cancel()
	st := i.rt.Store
	err = unit.Transact(ctx, i.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		var head audit.Head
		if err := tx.Run(ctx, st.ClaimAuditChainIfFree(chain, func(h audit.Head) { head = h })); err != nil || head.Seq == head.BaseSeq {
			return err
		}
		through, hash := head.BaseSeq, head.BaseHash
		oldest := st.AuditOldest(chain, head.BaseSeq+trimBatch, before, func(seq int64, h []byte) { through, hash = seq, h })
		if err := tx.Run(ctx, oldest); err != nil || through == head.BaseSeq {
			return err
		}
		entry := i.trimEntry(ctx, chain, audit.Trimmed{Through: through, Hash: hex.EncodeToString(hash), Removed: through - head.BaseSeq})
		stmts := st.TrimAudit(head, through, hash, &removed)
		entries := []audit.Entry{entry}
		return tx.Run(ctx, append(stmts, st.AppendAudit(entries, head, head.Append(entries))...)...)
	})
	return removed, err
}

// trimEntry returns the entry that records a removal. Its principal is the acting operator,
// or retention.
func (i *Inspector) trimEntry(ctx context.Context, chain int, t audit.Trimmed) audit.Entry {
	after, _ := json.Marshal(t) // numbers and a string
	e := audit.Entry{Principal: "system", Label: "retention", Via: "system"}
	if act := audit.Of(ctx); act != nil {
		e = act.Entry
	}
	e.ID, e.At = i.rt.NewID(), i.rt.Clock.Now().UTC().Truncate(time.Microsecond)
	e.Action, e.Kind, e.Target, e.After = audit.Trim, "audit", fmt.Sprint("chain ", chain), string(after)
	return e
}
