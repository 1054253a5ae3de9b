package doctor

import (
	"context"
	"fmt"
	"math"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

// auditPage is the number of entries of the audit log that are read at a time.
const auditPage = 1000

// AuditReport is the result of verifying the audit log.
type AuditReport struct {
	// Entries is the number of entries.
	Entries int64 `json:"entries"`
	// Heads are the last hashes of the chains that have entries. Keep a copy of them
	// elsewhere. If the chains of a later report do not contain them, it is the report of
	// another log.
	Heads    []AuditHead `json:"heads"`
	Problems []string    `json:"problems"`
}

// AuditHead is the last entry of a chain.
type AuditHead struct {
	Chain int    `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
}

// VerifyAudit recomputes the hashes of all entries of the audit log.
func VerifyAudit(ctx context.Context, eng *perdure.Engine) (AuditReport, error) {
	report := AuditReport{Heads: []AuditHead{}, Problems: []string{}}
	rt := host.Of(eng)
	for chain := 1; chain <= audit.Chains; chain++ {
		if err := report.chain(ctx, rt, chain); err != nil {
			return report, fmt.Errorf("verify audit log: %w", err)
		}
	}
	var stray int64
	others := rt.Store.AuditChains(func(h audit.Head) {
		if h.Chain < 1 || h.Chain > audit.Chains {
			report.Problems = append(report.Problems, fmt.Sprintf("chain %d was added", h.Chain))
		}
	})
	err := unit.Once(ctx, rt.DB, sqldb.Read, func(tx sqldb.Tx) error { return tx.Run(ctx, rt.Store.StrayAudit(&stray), others) })
	if err != nil {
		return report, fmt.Errorf("verify audit log: %w", err)
	}
	if stray > 0 {
		report.Problems = append(report.Problems, fmt.Sprintf("%d entries are in no chain", stray))
	}
	return report, nil
}

// chain verifies one chain on one snapshot, so that entries that are written concurrently
// are not taken for a fault.
func (r *AuditReport) chain(ctx context.Context, rt *host.Runtime, chain int) error {
	return unit.Once(ctx, rt.DB, sqldb.Read, func(tx sqldb.Tx) error {
		var head audit.Head
		if err := tx.Run(ctx, rt.Store.AuditChain(chain, func(h audit.Head) { head = h })); err != nil {
			return err
		}
		if head.Chain == 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("chain %d is missing", chain))
			return nil
		}
		v := audit.NewVerifier(head)
		for after, more := int64(math.MinInt64), true; more; {
			n := 0
			page := rt.Store.AuditOfChain(chain, after, auditPage, func(e audit.Entry) {
				n, after = n+1, e.Seq
				v.Entry(e)
			})
			if err := tx.Run(ctx, page); err != nil {
				return err
			}
			r.Entries += int64(n)
			more = n == auditPage
		}
		r.Problems = append(r.Problems, v.End()...)
		if head.Seq > 0 {
			r.Heads = append(r.Heads, AuditHead{Chain: chain, Seq: head.Seq, Hash: fmt.Sprintf("%x", head.Hash)})
		}
		return nil
	})
}

// audit verifies the audit log of a database that has one.
func (x *examination) audit(ctx context.Context) error {
	report, err := VerifyAudit(ctx, x.eng)
	if err != nil {
		return err
	}
	findings := make([]Finding, len(report.Problems))
	for i, p := range report.Problems {
		findings[i] = Finding{Detail: p}
	}
	x.add("audit_log", fmt.Sprintf("%d entries", report.Entries), findings...)
	return nil
}
