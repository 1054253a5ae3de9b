package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
)

// HasAudit reports whether the database has the audit log.
func (s *Store) HasAudit() bool { return s.text("AuditClaim") != "" }

// ClaimAuditChain returns the statement that locks a chain of the audit log that no other
// transaction has locked. It finds none if all chains are locked.
func (s *Store) ClaimAuditChain(found func(audit.Head)) sqldb.Stmt {
	return chainRow(s.stmt("AuditClaim"), found)
}

// ClaimAuditChainOf returns the statement that locks one chain of the audit log. It waits for a
// transaction that has locked the chain.
func (s *Store) ClaimAuditChainOf(chain int, found func(audit.Head)) sqldb.Stmt {
	return needsOne(chainRow(s.stmt("AuditClaimOne", chain), found), fmt.Errorf("chain %d of the audit log is missing", chain))
}

// ClaimAuditChainIfFree returns the statement that locks one chain of the audit log, unless
// another transaction has locked it.
func (s *Store) ClaimAuditChainIfFree(chain int, found func(audit.Head)) sqldb.Stmt {
	return chainRow(s.stmt("AuditClaimFree", chain), found)
}

// StrayAudit returns the statement that counts the entries that belong to no chain.
func (s *Store) StrayAudit(n *int64) sqldb.Stmt {
	return withRow(s.stmt("AuditStray", audit.Chains), func(scan sqldb.Scan) error { return scan(n) })
}

// AppendAudit returns the statements that add entries, whose positions are set, and advance
// their chain from the head before to the head after.
func (s *Store) AppendAudit(entries []audit.Entry, before, after audit.Head) []sqldb.Stmt {
	text := func(pick func(audit.Entry) string) []string { return column(entries, pick) }
	insert := s.stmt("AuditInsert", tuples{
		text(func(e audit.Entry) string { return e.ID }), column(entries, func(e audit.Entry) int { return e.Chain }),
		column(entries, func(e audit.Entry) int64 { return e.Seq }), column(entries, func(e audit.Entry) time.Time { return e.At }),
		text(func(e audit.Entry) string { return e.Action }), text(func(e audit.Entry) string { return e.Kind }), text(func(e audit.Entry) string { return e.Target }),
		text(func(e audit.Entry) string { return e.Principal }), text(func(e audit.Entry) string { return e.Label }), text(func(e audit.Entry) string { return e.Role }),
		text(func(e audit.Entry) string { return e.Via }), text(func(e audit.Entry) string { return e.Address }), text(func(e audit.Entry) string { return e.Request }),
		text(func(e audit.Entry) string { return e.Reason }), text(func(e audit.Entry) string { return e.Input }),
		text(func(e audit.Entry) string { return e.Before }), text(func(e audit.Entry) string { return e.After }),
		text(func(e audit.Entry) string { return hex.EncodeToString(e.Hash) }),
	})
	advance := s.stmt("AuditAdvance", after.Seq, hex.EncodeToString(after.Hash), after.Chain, before.Seq)
	advance.Done = sqldb.One(fmt.Errorf("chain %d of the audit log was changed concurrently", after.Chain))
	return []sqldb.Stmt{insert, advance}
}

// RecordAct appends the entries of a context's act, if there is one, to the audit log. It is
// for transactions that are not units of work and whose statements have run.
func (s *Store) RecordAct(ctx context.Context, run sqldb.Runner) error {
	act := audit.Of(ctx)
	if act == nil || !s.HasAudit() {
		return nil
	}
	var head audit.Head
	if err := run.Run(ctx, s.ClaimAuditChain(func(h audit.Head) { head = h })); err != nil {
		return err
	}
	stmts, err := s.RecordEntries(ctx, run, act.Entries(), head)
	if err != nil {
		return err
	}
	return run.Run(ctx, stmts...)
}

// Act runs fn, which changes the target of a context's act. It then appends the entries of the
// act with the state before and after. It is for transactions that are not units of work.
func (s *Store) Act(ctx context.Context, run sqldb.Runner, fn func() error) error {
	act := audit.Of(ctx)
	if act == nil || !s.HasAudit() {
		return fn()
	}
	if act.ReadBefore != nil {
		if err := run.Run(ctx, act.ReadBefore()...); err != nil {
			return err
		}
	}
	if err := fn(); err != nil {
		return err
	}
	if act.ReadAfter != nil {
		if err := run.Run(ctx, act.ReadAfter()...); err != nil {
			return err
		}
	}
	return s.RecordAct(ctx, run)
}

// RecordPiece is RecordAct for an act that takes several transactions: each transaction records
// its own part, with its time. A target without an id is replaced by the target of the act.
func (s *Store) RecordPiece(ctx context.Context, run sqldb.Runner, at time.Time, t audit.Target) error {
	act := audit.Of(ctx)
	if act == nil {
		return nil
	}
	return s.RecordAct(audit.With(ctx, act.Piece(at, t)), run)
}

// RecordRemoved is RecordPiece for a transaction that removed n rows.
func (s *Store) RecordRemoved(ctx context.Context, run sqldb.Runner, at time.Time, n int64) error {
	return s.RecordPiece(ctx, run, at, audit.Target{After: fmt.Appendf(nil, `{"removed":%d}`, n)})
}

// RecordEntries returns the statements that append entries to the claimed chain. If every chain
// is locked by another transaction, it waits for one.
func (s *Store) RecordEntries(ctx context.Context, run sqldb.Runner, entries []audit.Entry, head audit.Head) ([]sqldb.Stmt, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	if head.Chain == 0 {
		any := 1 + rand.IntN(audit.Chains)
		if err := run.Run(ctx, s.ClaimAuditChainOf(any, func(h audit.Head) { head = h })); err != nil {
			return nil, err
		}
	}
	return s.AppendAudit(entries, head, head.Append(entries)), nil
}

// AuditChains returns the statement that reads the heads of all chains.
func (s *Store) AuditChains(found func(audit.Head)) sqldb.Stmt {
	return chainRow(s.stmt("AuditChains"), found)
}

// AuditChain returns the statement that reads the head of a chain.
func (s *Store) AuditChain(chain int, found func(audit.Head)) sqldb.Stmt {
	return chainRow(s.stmt("AuditChain", chain), found)
}

// AuditOfChain returns the statement that reads up to limit entries of a chain after a sequence
// number.
func (s *Store) AuditOfChain(chain int, after int64, limit int, found func(audit.Entry)) sqldb.Stmt {
	return auditRow(s.stmt("AuditOfChain", chain, after, limit), found)
}

// GetAudit returns the statement that reads an entry, if it exists.
func (s *Store) GetAudit(id string, found func(audit.Entry)) sqldb.Stmt {
	return auditRow(s.stmt("AuditGet", id), found)
}

// AuditFilter restricts a list of entries. Empty fields match every entry.
type AuditFilter struct {
	Action, Kind, Target, Principal string
	// Since and Until bound the times of the entries.
	Since, Until time.Time
}

// ListAudit returns the statement that reads up to limit entries, newest first, before the
// entry with an id; "" means from the newest.
func (s *Store) ListAudit(f AuditFilter, before string, limit int, found func(audit.Entry)) sqldb.Stmt {
	var where []string
	var args []any
	add := func(condition string, set bool, value any) {
		if set {
			where, args = append(where, condition), append(args, value)
		}
	}
	add("kind = ?", f.Kind != "", f.Kind)
	add("target = ?", f.Target != "", f.Target)
	add("principal = ?", f.Principal != "", f.Principal)
	add("action = ?", f.Action != "", f.Action)
	add("at >= ?", !f.Since.IsZero(), f.Since)
	add("at < ?", !f.Until.IsZero(), f.Until)
	add("id < ?", before != "", before)
	text := s.text("AuditList")
	if len(where) > 0 {
		text += "\nwhere " + strings.Join(where, " and ")
	}
	text += "\norder by id desc\nlimit ?"
	return auditRow(sqldb.Stmt{SQL: s.complete(text), Args: append(args, limit)}, found)
}

// AuditOldest returns the statement that finds the last entry of a chain, up to a sequence
// number, that is older than a time.
func (s *Store) AuditOldest(chain int, through int64, before time.Time, found func(seq int64, hash []byte)) sqldb.Stmt {
	oldest := s.stmt("AuditOldest", chain, through, before)
	oldest.Row = func(scan sqldb.Scan) error {
		var seq int64
		var text string
		if err := scan(&seq, &text); err != nil {
			return err
		}
		hash, err := hex.DecodeString(text)
		if err != nil {
			return fmt.Errorf("read hash of audit log: %w", err)
		}
		found(seq, hash)
		return nil
	}
	return oldest
}

// TrimAudit returns the statements that remove the entries of a chain up to a sequence number.
func (s *Store) TrimAudit(h audit.Head, through int64, hash []byte, removed *int64) []sqldb.Stmt {
	rebase := s.stmt("AuditRebase", through, hex.EncodeToString(hash), h.Chain, h.BaseSeq)
	rebase.Done = sqldb.One(fmt.Errorf("chain %d of the audit log was changed concurrently", h.Chain))
	return []sqldb.Stmt{rebase, counted(s.stmt("AuditRemove", h.Chain, through), removed)}
}

func chainRow(stmt sqldb.Stmt, found func(audit.Head)) sqldb.Stmt {
	stmt.Row = func(scan sqldb.Scan) error {
		var h audit.Head
		var hash, base string
		if err := scan(&h.Chain, &h.Seq, &hash, &h.BaseSeq, &base); err != nil {
			return fmt.Errorf("read chain of audit log: %w", err)
		}
		h.Hash, h.BaseHash = hashOf(hash), hashOf(base)
		found(h)
		return nil
	}
	return stmt
}

// hashOf decodes the text of a hash. A text that Perdure has not written becomes bytes that no
// entry hashes to, so that the verifier finds it.
func hashOf(text string) []byte {
	hash, err := hex.DecodeString(text)
	if err != nil || hex.EncodeToString(hash) != text {
		return []byte("hash is malformed: " + text)
	}
	return hash
}

func auditRow(stmt sqldb.Stmt, found func(audit.Entry)) sqldb.Stmt {
	stmt.Row = func(scan sqldb.Scan) error {
		var e audit.Entry
		var hash string
		err := scan(&e.ID, &e.Chain, &e.Seq, &e.At, &e.Action, &e.Kind, &e.Target, &e.Principal, &e.Label, &e.Role, &e.Via, &e.Address, &e.Request, &e.Reason,
			&e.Input, &e.Before, &e.After, &hash)
		if err != nil {
			return fmt.Errorf("read entry of audit log: %w", err)
		}
		e.At = e.At.UTC()
		e.Hash = hashOf(hash)
		found(e)
		return nil
	}
	return stmt
}
