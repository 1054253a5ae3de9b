package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// NewInstance is an instance to be started. It is due at At, or Delay from now.
type NewInstance struct {
	ID, FSM     string
	Version     int
	Step, State string
	Queue       string
	Priority    int
	Parent      *string
	Fanout      *int
	Ordinal     *int
	At          *time.Time
	Delay       time.Duration
	Deadline    *time.Duration
	Partition   *string
	UniqueName  *string
	UniqueKey   *string
	UniqueScope int
	Trace       *string
	// Existed is not nil if the instance is not started when its id is taken. The statements
	// set it to whether the id was taken. Such an instance has no unique key.
	Existed *bool
}

// plain reports whether the instance needs neither a unique key nor a partition.
func (n NewInstance) plain() bool { return n.Partition == nil && n.UniqueKey == nil }

// StartInstances returns the statements that start instances. An instance whose unique key is
// already in use is not started; see UniqueOwners.
func (s *Store) StartInstances(all []NewInstance, now Now) []sqldb.Stmt {
	if i := slices.IndexFunc(all, func(n NewInstance) bool { return n.Existed != nil }); i >= 0 {
		return slices.Concat(s.StartInstances(all[:i], now), s.startAbsent(all[i], now), s.StartInstances(all[i+1:], now))
	}
	plain, special := divide(all)
	var stmts []sqldb.Stmt
	switch {
	case len(plain) > 0 && alike(plain):
		stmts = append(stmts, s.startAlike(plain, now)...)
	case len(plain) > 0:
		stmts = append(stmts, s.stmts("InstanceStart", s.newColumns(plain), at(now))...)
	}
	if len(special) > 0 {
		stmts = append(stmts, s.startSpecial(special, now)...)
	}
	return append(stmts, s.traceInstances(all)...)
}

// divide separates plain instances from the others.
func divide(all []NewInstance) (plain, special []NewInstance) {
	if !slices.ContainsFunc(all, func(n NewInstance) bool { return !n.plain() }) {
		return all, nil
	}
	for _, n := range all {
		if n.plain() {
			plain = append(plain, n)
		} else {
			special = append(special, n)
		}
	}
	return plain, special
}

// alike reports whether instances differ only in id and state, and are due now.
func alike(all []NewInstance) bool {
	first := all[0]
	for _, n := range all {
		if n.FSM != first.FSM || n.Version != first.Version || n.Step != first.Step || n.Queue != first.Queue || n.Priority != first.Priority ||
			n.Parent != nil || n.At != nil || n.Delay != 0 || n.Deadline != nil {
			return false
		}
	}
	return true
}

func (s *Store) startAlike(all []NewInstance, now Now) []sqldb.Stmt {
	n := all[0]
	return s.stmts("InstanceStartAlike", n.FSM, n.Version, n.Step, n.Queue, n.Priority, tuples{
		column(all, func(n NewInstance) string { return n.ID }),
		column(all, func(n NewInstance) string { return s.seal(instanceState, n.State, n.ID) }),
	}, at(now))
}

// traceInstances returns the statement that records the traces of instances that have one.
func (s *Store) traceInstances(all []NewInstance) []sqldb.Stmt {
	var traced []NewInstance
	for _, n := range all {
		if n.Trace != nil {
			traced = append(traced, n)
		}
	}
	if len(traced) == 0 {
		return nil
	}
	return []sqldb.Stmt{s.stmt("InstanceTrace", tuples{
		column(traced, func(n NewInstance) string { return n.ID }),
		column(traced, func(n NewInstance) string { return *n.Trace }),
	})}
}

func (s *Store) newColumns(all []NewInstance) tuples {
	return tuples{
		column(all, func(n NewInstance) string { return n.ID }),
		column(all, func(n NewInstance) string { return n.FSM }),
		column(all, func(n NewInstance) int { return n.Version }),
		column(all, func(n NewInstance) string { return n.Step }),
		column(all, func(n NewInstance) string { return s.seal(instanceState, n.State, n.ID) }),
		column(all, func(n NewInstance) string { return n.Queue }),
		column(all, func(n NewInstance) int { return n.Priority }),
		column(all, func(n NewInstance) *string { return n.Parent }),
		column(all, func(n NewInstance) *int { return n.Fanout }),
		column(all, func(n NewInstance) *int { return n.Ordinal }),
		column(all, func(n NewInstance) *time.Time { return n.At }),
		column(all, func(n NewInstance) int64 { return n.Delay.Microseconds() }),
		column(all, func(n NewInstance) *int64 { return micros(n.Deadline) }),
	}
}

func (s *Store) startSpecial(all []NewInstance, now Now) []sqldb.Stmt {
	var unique []NewInstance
	for _, n := range all {
		if n.UniqueKey != nil {
			unique = append(unique, n)
		}
	}
	var stmts []sqldb.Stmt
	if len(unique) > 0 {
		stmts = append(stmts, s.stmt("UniqueEnter", tuples{
			column(unique, func(n NewInstance) string { return *n.UniqueName }),
			column(unique, func(n NewInstance) string { return *n.UniqueKey }),
			column(unique, func(n NewInstance) string { return n.ID }),
		}))
	}
	columns := append(s.newColumns(all),
		column(all, func(n NewInstance) *string { return n.Partition }),
		column(all, func(n NewInstance) *string { return n.UniqueName }),
		column(all, func(n NewInstance) *string { return n.UniqueKey }),
		column(all, func(n NewInstance) int { return n.UniqueScope }),
	)
	ids := one(column(all, func(n NewInstance) string { return n.ID }))
	stmts = append(stmts, s.stmts("InstanceInsert", columns, at(now))...)
	return append(stmts, s.stmt("PartitionEnter", ids), s.stmt("PartitionQueue", ids), s.stmt("InstanceReady", ids))
}

// startAbsent returns the statements that start an instance unless its id is taken. n.Existed
// is set to whether it was.
func (s *Store) startAbsent(n NewInstance, now Now) []sqldb.Stmt {
	args := []any{n.ID, n.FSM, n.Version, n.Step, s.seal(instanceState, n.State, n.ID), n.Queue, n.Priority,
		at(now), n.At, n.Delay.Microseconds(), micros(n.Deadline), n.Partition, n.Trace}
	if s.dialect.Name == sqldb.MySQL {
		args = append(args, uuid.NewString()) // marks the new row
	}
	stmts := s.stmts("InstanceStartAbsent", args...)
	last := &stmts[len(stmts)-1]
	if s.dialect.Name == sqldb.Postgres {
		last.Row = textRow(func(string) {})
	}
	*last = outcome(*last, n.Existed)
	return stmts
}

// UniqueKey identifies an occupied unique key.
type UniqueKey struct{ Name, Key string }

// UniqueOwners returns the statement that reads the owners of keys.
func (s *Store) UniqueOwners(keys []UniqueKey, found func(key UniqueKey, id string)) sqldb.Stmt {
	owners := s.stmt("UniqueOwners", tuples{
		column(keys, func(k UniqueKey) string { return k.Name }),
		column(keys, func(k UniqueKey) string { return k.Key }),
	})
	return threeColumns(owners, func(name, key, id string) { found(UniqueKey{Name: name, Key: key}, id) })
}

// Instance is an instance as a claim reads it.
type Instance struct {
	ID, FSM     string
	Version     int
	Step, State string
	Attempt     int
	// Failures is the number of failed attempts. Attempt also counts replays.
	Failures     int
	Crashes      int
	Awaits       []string
	Keeps        bool
	Seen         []int64
	TimedOut     bool
	Fanout       int
	Dropped      json.RawMessage
	Parent       *string
	ParentFanout *int
	Partition    *string
	UniqueName   *string
	UniqueKey    *string
	UniqueScope  int
	Deadline     *time.Time
	Created      time.Time
	Priority     int
	Due          time.Time
	Trace        *string
	// Awaited are the names of all signals that the instance has ever awaited.
	Awaited []string
	// Rerun is true if the step runs again because signals arrived while its last run finished
	// the instance.
	Rerun bool
	// Wait is the wait of the instance when it finished, if it was retried and has not been
	// parked again yet.
	Wait *Waited
	// CancelReason is the reason of the cancellation, while the cancel step runs.
	CancelReason *string
	// Paused is true if the definition was paused when the instance was claimed.
	Paused bool
	// Sealed is the error if the state could not be decrypted. The state then has its stored
	// form.
	Sealed error
	// Unreadable is set if a column could not be decoded.
	Unreadable error
}

// instanceRow reads an instance. The row of a claim has one more column: whether the definition
// is paused.
func (s *Store) instanceRow(claimed bool, found func(*Instance)) func(sqldb.Scan) error {
	var row Instance
	var awaits, seen, dropped, awaited, wait *string
	to := []any{
		&row.ID, &row.FSM, &row.Version, &row.Step, &row.State, &row.Attempt, &row.Failures, &row.Crashes, &awaits, &row.Keeps, &seen, &row.TimedOut, &row.Fanout,
		&dropped, &row.Parent, &row.ParentFanout, &row.Partition, &row.UniqueName, &row.UniqueKey, &row.UniqueScope, &row.Deadline, &row.Created,
		&row.Priority, &row.Due, &row.Trace, &awaited, &row.Rerun, &wait, &row.CancelReason,
	}
	if claimed {
		to = append(to, &row.Paused)
	}
	return func(scan sqldb.Scan) error {
		if err := scan(to...); err != nil {
			return err
		}
		i := row
		i.State, i.Sealed = s.open(instanceState, i.State, i.ID)
		i.Unreadable = cmp.Or(
			parseJSON("awaited signals", awaits, &i.Awaits), parseJSON("seen signals", seen, &i.Seen),
			parseJSON("signal names", awaited, &i.Awaited), parseJSON("awaited signals", wait, &i.Wait),
		)
		if dropped != nil {
			i.Dropped = json.RawMessage(*dropped)
		}
		found(&i)
		return nil
	}
}

func parseJSON(what string, text *string, to any) error {
	if text == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(*text), to); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// NextInstance returns the statement that reads the time until the next instance of a queue is
// due, for a process that knows these definitions. The process runs suspects with a batch limit
// of at least least, or no suspects if least is 0. found is not called if no instance is
// waiting.
func (s *Store) NextInstance(queue string, known []KnownStep, least int, now Now, found func(time.Duration)) sqldb.Stmt {
	return withRow(s.stmt("InstanceNextWake", at(now), queue, knownColumns(known), least), durationRow(found))
}

// durationRow reads microseconds. found is not called for null.
func durationRow(found func(time.Duration)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var us *int64
		if err := scan(&us); err != nil || us == nil {
			return err
		}
		found(time.Duration(min(*us, maxMicroseconds)) * time.Microsecond)
		return nil
	}
}
