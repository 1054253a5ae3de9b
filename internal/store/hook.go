package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
)

// HookStatus is where a hook is in its life.
type HookStatus string

// Hook is one row of the hooks.
type Hook struct {
	ID, Namespace, Name string
	Payload             string
	Status              HookStatus
	Priority            int
	Policy              string
	MaxAttempts         int
	Attempts            int
	Crashes             int
	Limit               *int // batch limit of a suspect, set by a claim
	Error               *string
	Unit                string
	Trace               *string
	Created             time.Time
	NextAttempt         *time.Time
	Due                 time.Time
	LastAttempt         *time.Time
	Finished            *time.Time
	Worker              *string
	LeaseExpires        *time.Time
	// Sealed is why the payload could not be opened; it is as it is stored then.
	Sealed error
}

// NewHook is a hook to be recorded. It is due at At, or Delay from now.
type NewHook struct {
	ID, Namespace, Name, Unit string
	Payload, Policy           string
	Trace                     *string
	Priority, MaxAttempts     int
	At                        *time.Time
	Delay                     time.Duration
}

// Now is the time of a statement: nil where the server's clock decides.
type Now *time.Time

// InsertHook returns the statement that records a hook.
func (s *Store) InsertHook(h NewHook, now Now) sqldb.Stmt {
	return s.stmt("HookInsert", h.ID, h.Namespace, h.Name, s.seal(hookPayload, h.Payload, h.ID), h.Priority, h.Policy, h.MaxAttempts, h.Unit, h.Trace,
		at(now), h.At, at(now), h.Delay.Microseconds())
}

// at makes the time an argument: a nil pointer is null.
func at(now Now) *time.Time { return (*time.Time)(now) }

// outcome guards a statement that ends a claim: stale learns that the claim is
// no longer held, which is no error.
func outcome(stmt sqldb.Stmt, stale *bool) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*stale = rows == 0
		return nil
	}
	return stmt
}

// CompleteHook returns the statement that ends a claim with success.
func (s *Store) CompleteHook(id, token string, now Now, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("HookComplete", at(now), id, token), stale)
}

// RetryHook returns the statements that end a claim with a failure after which
// the hook is due again in a while, and record the attempt.
func (s *Store) RetryHook(id, token, message string, delay time.Duration, now Now, stale *bool) []sqldb.Stmt {
	us := delay.Microseconds()
	return s.recorded(TriedHook(id), s.hookAttempt(id, &token, retry.Failed, message, now),
		outcome(s.stmt("HookRetry", message, at(now), us, at(now), us, id, token), stale))
}

// FailHook returns the statements that end a claim with the last failure, and
// record the attempt.
func (s *Store) FailHook(id, token, message string, now Now, stale *bool) []sqldb.Stmt {
	return s.recorded(TriedHook(id), s.hookAttempt(id, &token, retry.Failed, message, now),
		outcome(s.stmt("HookFail", message, at(now), id, token), stale))
}

// ReleaseHook returns the statement that gives a claim back at no cost.
func (s *Store) ReleaseHook(id, token string, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("HookRelease", id, token), stale)
}

// PostponeHook returns the statement that gives a claim back for a while, at no
// cost. A message that is not nil becomes the hook's error.
func (s *Store) PostponeHook(id, token string, message *string, delay time.Duration, now Now) sqldb.Stmt {
	us := delay.Microseconds()
	return s.stmt("HookPostpone", message, at(now), us, at(now), us, id, token)
}

// ExtendHook returns the statement that renews the lease of a claim.
func (s *Store) ExtendHook(id, token string, lease time.Duration, now Now, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("HookExtend", at(now), lease.Microseconds(), id, token), stale)
}

// GetHook returns the statement that reads a hook.
func (s *Store) GetHook(id string, found func(Hook)) sqldb.Stmt {
	get := s.stmt("HookGet", id)
	get.Row = s.hookRow(found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "hook", ID: id})
	return get
}

// ReviveHook returns the statements that make a finished or a waiting hook due
// now; changed learns whether there was one.
func (s *Store) ReviveHook(id string, now Now, changed *int64) []sqldb.Stmt {
	revive := counted(s.stmt("HookRevive", at(now), id), changed)
	hasten := s.stmt("HookHasten", at(now), id)
	hasten.Done = func(rows int64) error {
		*changed += rows // revive has set it
		return nil
	}
	return []sqldb.Stmt{revive, hasten}
}

// CancelHook returns the statement that cancels a hook; changed learns whether
// it was pending or processing.
func (s *Store) CancelHook(id string, now Now, changed *int64) sqldb.Stmt {
	return counted(s.stmt("HookCancel", at(now), id), changed)
}

// StopHook returns the statements that cancel a hook as CancelHook does, and record
// the attempt that this cuts short, if there is one.
func (s *Store) StopHook(id string, now Now, changed *int64) []sqldb.Stmt {
	return s.recorded(TriedHook(id), s.hookAttempt(id, nil, retry.Cancelled, "cancelled while it ran", now), s.CancelHook(id, now, changed))
}

// DeleteHook returns the statements that remove a hook unless it is processing;
// deleted learns whether they did.
func (s *Store) DeleteHook(id string, deleted *int64) []sqldb.Stmt {
	return []sqldb.Stmt{counted(s.stmt("HookDelete", id), deleted), s.stmt("HookForget", id, id)}
}

// PurgeHooks returns the statements that remove up to limit hooks that were
// done longer than age ago.
func (s *Store) PurgeHooks(dead bool, age time.Duration, limit int, now Now, removed *int64) []sqldb.Stmt {
	name := "HookPurge"
	if dead {
		name = "HookPurgeDead"
	}
	stmts := s.stmts(name, at(now), age.Microseconds(), limit)
	last := len(stmts) - 1
	stmts[last] = counted(stmts[last], removed)
	return stmts
}

// counted lets n learn how many rows a statement has changed.
func counted(stmt sqldb.Stmt, n *int64) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*n = rows
		return nil
	}
	return stmt
}

// HookFilter narrows a list of hooks. Empty fields do not narrow.
type HookFilter struct {
	Namespace, Name string
	Statuses        []HookStatus
	Unit            string
	// IDs lists these only.
	IDs []string
	// Before is where the last page ended: its last row, newest first.
	BeforeCreated time.Time
	BeforeID      string
	Limit         int
}

// ListHooks returns the statement that reads hooks, newest first.
func (s *Store) ListHooks(f HookFilter, found func(Hook)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("HookGet"), "where ")
	w := conditions{}
	w.equal("namespace", f.Namespace)
	w.equal("name", f.Name)
	w.equal("unit_id", f.Unit)
	statuses := make([]any, len(f.Statuses))
	for i, status := range f.Statuses {
		statuses[i] = string(status)
	}
	w.in("status", statuses)
	ids := make([]any, len(f.IDs))
	for i, id := range f.IDs {
		ids[i] = id
	}
	w.in("id", ids)
	if f.BeforeID != "" {
		w.add("(created_at < ? or (created_at = ? and id < ?))", f.BeforeCreated, f.BeforeCreated, f.BeforeID)
	}
	text := head + w.sql() + "order by created_at desc, id desc\nlimit ?"
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: s.hookRow(found)}
}

func (s *Store) hookRow(found func(Hook)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var h Hook
		err := scan(&h.ID, &h.Namespace, &h.Name, &h.Payload, &h.Status, &h.Priority, &h.Policy, &h.MaxAttempts, &h.Attempts,
			&h.Crashes, &h.Error, &h.Unit, &h.Created, &h.NextAttempt, &h.Due, &h.LastAttempt, &h.Finished, &h.Worker, &h.LeaseExpires)
		if err != nil {
			return err
		}
		h.Payload, h.Sealed = s.open(hookPayload, h.Payload, h.ID)
		found(h)
		return nil
	}
}
