package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// MachineNames returns the statement that reads the names of the stored statecharts.
func (s *Store) MachineNames(found func(string)) sqldb.Stmt {
	names := s.stmt("MachineNames")
	names.Row = textRow(found)
	return names
}

// NextTimer returns the statement that reads the time until the next timer of the types is due.
// found is not called if there is no timer.
func (s *Store) NextTimer(types []string, now Now, found func(time.Duration)) sqldb.Stmt {
	next := s.stmt("TimerNext", at(now), one(types))
	next.Row = func(scan sqldb.Scan) error {
		var us *int64
		if err := scan(&us); err != nil || us == nil {
			return err
		}
		found(time.Duration(min(*us, maxMicroseconds)) * time.Microsecond)
		return nil
	}
	return next
}

// ListTimers returns the statement that reads all timers of actors.
func (s *Store) ListTimers(refs []ActorRef, found func(ActorTimer)) sqldb.Stmt {
	return s.timers(s.stmt("TimerList", refColumns(refs, itself)), found)
}

// TimersAhead returns the statement that reads the timers of a type that are due until a time.
func (s *Store) TimersAhead(typ string, until time.Time, limit int, found func(ActorTimer)) sqldb.Stmt {
	return s.timers(s.stmt("TimerAhead", typ, until, limit), found)
}

func (s *Store) timers(stmt sqldb.Stmt, found func(ActorTimer)) sqldb.Stmt {
	stmt.Row = func(scan sqldb.Scan) error {
		var t ActorTimer
		var payload, path *string // null only in rows that Perdure did not write
		var generation *int64
		err := scan(&t.Type, &t.ID, &t.AlarmID, &t.Event, &t.Due, &t.Sequence, &payload, &path, &generation, &t.Created, &t.Crashes, &t.Error)
		t.Payload, t.Path, t.Generation = or(payload, ""), or(path, ""), or(generation, 0)
		if err == nil {
			t.Payload, t.Sealed = s.open(alarmPayload, t.Payload, t.Type, t.ID, t.AlarmID)
			found(t)
		}
		return err
	}
	return stmt
}

// ListActorLog returns the statement that reads the log of an actor after one sequence number,
// up to and including another.
func (s *Store) ListActorLog(ref ActorRef, after, until int64, limit int, found func(ActorEntry)) sqldb.Stmt {
	list := s.stmt("ActorLogList", ref.Type, ref.ID, after, until, limit)
	list.Row = func(scan sqldb.Scan) error {
		var e ActorEntry
		err := scan(&e.Type, &e.ID, &e.Sequence, &e.Kind, &e.Event, &e.CallerKind, &e.CallerID, &e.Path, &e.Generation, &e.Key, &e.Said, &e.Value,
			&e.Checksum, &e.At, &e.Recorded)
		if err == nil {
			var other error
			e.Event, e.Sealed = s.openAny(logEvent, e.Event, e.place()...)
			if e.Said, other = s.openAny(logSaid, e.Said, e.place()...); e.Sealed == nil {
				e.Sealed = other
			}
			found(e)
		}
		return err
	}
	return list
}

// LastCheckpoint returns the statement that reads the last checkpoint of an actor at or before
// a transition.
func (s *Store) LastCheckpoint(ref ActorRef, until int64, found func(Checkpoint)) sqldb.Stmt {
	get := s.stmt("CheckpointGet", ref.Type, ref.ID, until)
	get.Row = func(scan sqldb.Scan) error {
		var c Checkpoint
		err := scan(&c.Type, &c.ID, &c.Sequence, &c.Machine, &c.Snapshot, &c.Timers, &c.Checksum)
		if err == nil {
			var other error
			c.Snapshot, c.Sealed = s.open(pointSnapshot, c.Snapshot, c.place()...)
			if c.Timers, other = s.open(pointTimers, c.Timers, c.place()...); c.Sealed == nil {
				c.Sealed = other
			}
			found(c)
		}
		return err
	}
	return get
}

// PruneActorLogs returns the statements that remove the logs of actors up to the last
// checkpoint at or before a transition.
func (s *Store) PruneActorLogs(refs []ActorRef, before []int64) []sqldb.Stmt {
	return s.stmts("ActorLogPrune", append(refColumns(refs, itself), before))
}

// PurgeActorKeys returns the statement that removes keys that are older than age.
func (s *Store) PurgeActorKeys(age time.Duration, limit int, now Now, removed *int64) sqldb.Stmt {
	return counted(s.stmt("ActorKeyPurge", at(now), age.Microseconds(), limit), removed)
}

// DeleteActor returns the statements that remove all stored data of an actor, except its
// effects.
func (s *Store) DeleteActor(ref ActorRef) []sqldb.Stmt {
	return s.stmts("ActorDelete", ref.Type, ref.ID)
}

// ActorFilter restricts a list of actors. Empty fields match every actor.
type ActorFilter struct {
	Type     string
	Statuses []string
	// State is the path of an active state.
	State string
	// Before is the last row of the previous page, newest first.
	Before ActorPlace
	// Last is the last row to read. Default: the oldest.
	Last  ActorPlace
	Limit int
}

// ActorPlace is the position of an actor in a list.
type ActorPlace struct {
	Created time.Time
	ActorRef
}

// narrow reports whether the filter excludes rows without the help of an index.
func (f ActorFilter) narrow() bool {
	_, served := within(f.Statuses, actorIndexes)
	return f.State != "" || len(f.Statuses) > 0 && !served
}

// actorIndexes are the partial indexes of actors.
var actorIndexes = []partial{{[]string{"error", "quarantined"}, "a.status in ('error', 'quarantined')", "a.is_dead = 1"}}

// ranged returns the conditions that an index supports.
func (f ActorFilter) ranged(s *Store) conditions {
	w := s.conditions()
	w.equal("a.type", f.Type)
	f.onSide(&w, "<", f.Before)
	return w
}

// onSide adds the condition that rows are on one side of a position. Within a type, rows are
// compared in the order of the type's index. The time is also compared separately, because
// MySQL uses no index for a comparison of several columns.
func (f ActorFilter) onSide(w *conditions, side string, p ActorPlace) {
	switch {
	case p.ID == "":
	case f.Type != "":
		w.add("a.created_at "+side[:1]+"= ? and (a.created_at, a.id) "+side+" (?, ?)", p.Created, p.Created, p.ID)
	default:
		w.add("a.created_at "+side[:1]+"= ? and (a.created_at, a.type, a.id) "+side+" (?, ?, ?)", p.Created, p.Created, p.Type, p.ID)
	}
}

// ActorStretch returns the statement that finds the end of the next range of a list. found is
// not called at the end of the list. No statement is returned if the list needs no ranges.
func (s *Store) ActorStretch(f ActorFilter, found func(ActorPlace)) []sqldb.Stmt {
	if !f.narrow() {
		return nil
	}
	w := f.ranged(s)
	text := "select a.created_at, a.type, a.id\nfrom " + s.dialect.Qualify("perdure", "actors") + " a\n" + w.sql() + actorOrder + "\nlimit 1 offset ?"
	return []sqldb.Stmt{{SQL: s.complete(text), Args: append(w.args, Stretch-1), Row: func(scan sqldb.Scan) error {
		var p ActorPlace
		err := scan(&p.Created, &p.Type, &p.ID)
		found(p)
		return err
	}}}
}

const actorOrder = "order by a.created_at desc, a.type desc, a.id desc"

// ListActors returns the statement that reads actors, newest first.
func (s *Store) ListActors(f ActorFilter, found func(ActorRecord)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("ActorGet"), ", a.snapshot_sequence")
	w := f.ranged(s)
	w.statuses(statusOf{place: "a.status"}, f.Statuses, time.Time{}, actorIndexes)
	if f.State != "" {
		w.add(s.dialect.Contains("a.states"), "\n"+f.State+"\n")
	}
	f.onSide(&w, ">=", f.Last)
	text := head + "\nfrom " + s.dialect.Qualify("perdure", "actors") + " a\n" + w.sql() + actorOrder + "\nlimit ?"
	list := sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit)}
	list.Row = func(scan sqldb.Scan) error {
		var a ActorRecord
		err := scan(a.columns()...)
		if err == nil {
			a.Input, a.Sealed = s.openAny(actorInput, a.Input, a.Type, a.ID)
			found(a)
		}
		return err
	}
	return list
}
