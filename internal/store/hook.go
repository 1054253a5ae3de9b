package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Hook is a hook as it is read. A claim reads only the fields that it needs.
type Hook struct {
	// ID is the public id. Item is the id of the row.
	ID, Item        string
	Namespace, Name string
	Payload         string
	// Status is the place of the hook; see Refine.
	Status       string
	Priority     int
	Policy       string
	MaxAttempts  int
	Attempts     int
	Crashes      int
	Error        *string
	Unit         string
	Trace        *string
	Created      time.Time
	NextAttempt  *time.Time
	Due          time.Time
	LastAttempt  *time.Time
	Finished     *time.Time
	Worker       *string
	LeaseExpires *time.Time
	// Sealed is the error if the payload could not be decrypted. The payload then has its
	// stored form.
	Sealed error
}

// NewHook is a hook to be recorded. It is due at At, or Delay from now.
type NewHook struct {
	// ID is the public id. Item is the id of the row. They are equal if the user did not choose
	// the id.
	ID, Item              string
	Namespace, Name, Unit string
	Payload, Policy       string
	Trace                 *string
	Priority, MaxAttempts int
	At                    *time.Time
	Delay                 time.Duration
	// Existed is not nil if the hook is not recorded when its id is taken. The statements set
	// it to whether the id was taken.
	Existed *bool
}

// Now is the time of a statement. If it is nil, the server's clock is used.
type Now *time.Time

// InsertHook returns the statements that record a hook.
func (s *Store) InsertHook(h NewHook, now Now) []sqldb.Stmt {
	var key *string
	if h.ID != h.Item {
		key = &h.ID
	}
	args := []any{at(now), h.At, h.Delay.Microseconds(), h.Item, key, h.Namespace, h.Name, HookLane(h.Namespace, h.Name),
		s.seal(hookPayload, h.Payload, h.ID), h.Priority, h.Policy, h.MaxAttempts, h.Unit, h.Trace}
	if h.Existed != nil {
		stmts := s.stmts("HookInsertAbsent", append(args, hookArgs(h.ID)[1])...)
		stmts[len(stmts)-1] = outcome(stmts[len(stmts)-1], h.Existed)
		return stmts
	}
	stmts := s.stmts("HookInsert", args...)
	if key != nil {
		stmts = append(s.notTaken(h.ID), stmts...)
	}
	return stmts
}

// InsertHooks returns the statements that record hooks that differ only in id and payload.
func (s *Store) InsertHooks(all []NewHook, now Now) []sqldb.Stmt {
	if !s.dialect.HasArrays() || slices.ContainsFunc(all, func(h NewHook) bool { return h.ID != h.Item || h.Existed != nil }) {
		var stmts []sqldb.Stmt
		for _, h := range all {
			stmts = append(stmts, s.InsertHook(h, now)...)
		}
		return stmts
	}
	h := all[0]
	return s.stmts("HookInsertMany", at(now), h.At, h.Delay.Microseconds(), tuples{
		column(all, func(h NewHook) string { return h.Item }),
		column(all, func(h NewHook) string { return s.seal(hookPayload, h.Payload, h.ID) }),
	}, h.Namespace, h.Name, HookLane(h.Namespace, h.Name), h.Priority, h.Policy, h.MaxAttempts, h.Unit, h.Trace)
}

// notTaken returns the statement that fails if an id chosen by a user is already the id of a
// row.
func (s *Store) notTaken(id string) []sqldb.Stmt {
	args := hookArgs(id)
	if args[1] == nil {
		return nil
	}
	taken := s.stmt("HookTaken", id)
	taken.Row = func(sqldb.Scan) error {
		return &fault.Duplicate{Constraint: "hook_items_pkey", Err: fmt.Errorf("hook %s already exists", id)}
	}
	return []sqldb.Stmt{taken}
}

// at converts the time to an argument. A nil pointer is null.
func at(now Now) *time.Time { return (*time.Time)(now) }

// outcome guards a statement that finishes a claim. stale is set if the claim is no longer
// held, which is not an error.
func outcome(stmt sqldb.Stmt, stale *bool) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*stale = rows == 0
		return nil
	}
	return stmt
}

// counted sets n to the number of rows that a statement changed.
func counted(stmt sqldb.Stmt, n *int64) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*n = rows
		return nil
	}
	return stmt
}

func (s *Store) claimedHook(found func(*Hook)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var h Hook
		err := scan(&h.Item, &h.ID, &h.Name, &h.Payload, &h.Priority, &h.Policy, &h.MaxAttempts, &h.Attempts, &h.Crashes, &h.Unit, &h.Trace, &h.Created, &h.Due)
		if err != nil {
			return err
		}
		h.Payload, h.Sealed = s.open(hookPayload, h.Payload, h.ID)
		found(&h)
		return nil
	}
}

// FailedHook is an attempt of a hook that failed.
type FailedHook struct {
	ID, Error string
	Took      time.Duration
	// Delay is the time until the hook is due again, nil if the hook has finished.
	Delay *time.Duration
}

// TryHooks returns the statement that counts failed attempts and sets the next due times.
func (s *Store) TryHooks(all []FailedHook, now Now) sqldb.Stmt {
	return s.stmt("HookTried", tuples{
		column(all, func(t FailedHook) string { return t.ID }),
		column(all, func(t FailedHook) string { return t.Error }),
		column(all, func(t FailedHook) int64 { return t.Took.Microseconds() }),
		column(all, func(t FailedHook) *int64 { return micros(t.Delay) }),
	}, at(now))
}

// HookEnd is the final status of a hook.
type HookEnd struct {
	ID      string
	Status  string
	Error   *string
	Created time.Time
	// Took is the running time of the last attempt, nil if there was none.
	Took *time.Duration
}

// EndHooks returns the statement that finishes hooks that a process has run.
func (s *Store) EndHooks(worker string, all []HookEnd, now Now) sqldb.Stmt {
	return s.stmt("HookEnd", worker, tuples{
		column(all, func(e HookEnd) string { return e.ID }),
		column(all, func(e HookEnd) string { return e.Status }),
		column(all, func(e HookEnd) *string { return e.Error }),
		column(all, func(e HookEnd) time.Time { return e.Created }),
		column(all, func(e HookEnd) *int64 { return micros(e.Took) }),
	}, at(now))
}

// FindHook returns the statement that locks a hook. found is not called if there is no such
// hook.
func (s *Store) FindHook(id string, found func(item, namespace string)) sqldb.Stmt {
	return twoColumns(s.stmt("HookFind", hookArgs(id)...), found)
}

// GetHook returns the statement that reads a hook.
func (s *Store) GetHook(id string, found func(Hook)) sqldb.Stmt {
	get := s.stmt("HookGet", hookArgs(id)...)
	get.Row = s.hookRow(found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "hook", ID: id})
	return get
}

// UnendHook returns the statement that removes the final status of a hook. removed is set to 1
// if the hook had finished.
func (s *Store) UnendHook(item string, removed *int64) sqldb.Stmt {
	return counted(s.stmt("HookUnend", item), removed)
}

// RestartHook returns the statement that makes a hook start over now.
func (s *Store) RestartHook(item string, now Now) sqldb.Stmt {
	return s.stmt("HookRevive", at(now), item)
}

// MakeHookDue returns the statement that makes a hook due now.
func (s *Store) MakeHookDue(item string, now Now) sqldb.Stmt {
	return s.stmt("HookHasten", at(now), item)
}

// CancelHook returns the statement that finishes a hook as cancelled. The hook must have been
// removed from all other places. ended is set to 0 if a process has already finished the hook.
func (s *Store) CancelHook(item string, now Now, ended *int64) sqldb.Stmt {
	return counted(s.stmt("HookCancel", at(now), item), ended)
}

// QuarantineHook returns the statements that finish a hook because it crashed too many
// processes.
func (s *Store) QuarantineHook(item, message string, now Now) []sqldb.Stmt {
	return s.stmts("HookQuarantine", message, at(now), item)
}

// DeleteHooks returns the statements that remove hooks that are neither waiting nor running.
func (s *Store) DeleteHooks(items []string) []sqldb.Stmt { return s.stmts("HookDelete", one(items)) }

// OldHooks returns the statement that locks up to limit hooks that finished longer than age
// ago: dead letters or the others.
func (s *Store) OldHooks(dead bool, age time.Duration, limit int, now Now, found func(item string)) sqldb.Stmt {
	name := "HookPurge"
	if dead {
		name = "HookPurgeDead"
	}
	return oneColumn(s.stmt(name, at(now), age.Microseconds(), limit), found)
}

// HookFilter restricts a list of hooks. Empty fields match every hook.
type HookFilter struct {
	Namespace, Name string
	Statuses        []string
	// Now distinguishes scheduled hooks from ready hooks.
	Now  time.Time
	Unit string
	// IDs selects only these hooks.
	IDs []string
	// BeforeCreated and BeforeItem identify the last row of the previous page, newest first.
	BeforeCreated time.Time
	BeforeItem    string
	Limit         int
}

// hookStatus is the status of a hook h that is joined with its end e and its row r of ready.
var hookStatus = statusOf{place: "coalesce(e.status, case when r.id is null then 'running' else 'ready' end)", attempts: "h.attempt", due: "h.due_at"}

// deadHooks are the statuses of dead letters.
var deadHooks = []string{StatusFailed, StatusQuarantined}

// ListHooks returns the statement that reads hooks, newest first.
func (s *Store) ListHooks(f HookFilter, found func(Hook)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("HookGet"), "where h.key")
	w := conditions{}
	w.equal("h.namespace", f.Namespace)
	w.equal("h.name", f.Name)
	w.equal("h.unit_id", f.Unit)
	w.statuses(hookStatus, f.Statuses, f.Now, nil)
	uuid := s.dialect.CastUUID()
	if len(f.IDs) > 0 {
		any, args := make([]string, len(f.IDs)), []any(nil)
		for i, id := range f.IDs {
			any[i] = "h.key = ? or h.key is null and h.id = ?" + uuid
			args = append(args, hookArgs(id)...)
		}
		w.add("("+strings.Join(any, " or ")+")", args...)
	}
	of := "h"
	if _, dead := within(f.Statuses, []partial{{statuses: deadHooks}}); dead { // use the index of dead letters
		of = "e"
		w.add("e.status in ('failed', 'quarantined')")
		if !s.dialect.HasPartialIndexes() {
			w.add("e.dead = 1")
		}
	}
	if f.BeforeItem != "" {
		w.add("("+of+".created_at < ? or ("+of+".created_at = ? and "+of+".id < ?"+uuid+"))", f.BeforeCreated, f.BeforeCreated, f.BeforeItem)
	}
	text := head + w.sql() + "order by " + of + ".created_at desc, " + of + ".id desc\nlimit ?"
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: s.hookRow(found)}
}

func (s *Store) hookRow(found func(Hook)) func(sqldb.Scan) error {
	return readRow(func(h Hook) {
		h.Payload, h.Sealed = s.open(hookPayload, h.Payload, h.ID)
		found(h)
	}, func(h *Hook) []any {
		return []any{&h.Item, &h.ID, &h.Namespace, &h.Name, &h.Payload, &h.Status, &h.Priority, &h.Policy, &h.MaxAttempts, &h.Attempts,
			&h.Crashes, &h.Error, &h.Unit, &h.Created, &h.NextAttempt, &h.Due, &h.LastAttempt, &h.Finished, &h.Worker, &h.LeaseExpires}
	})
}
