package store

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// ActorRef identifies an actor.
type ActorRef struct{ Type, ID string }

// Actor is the row of an actor as the locking statement returns it.
type Actor struct {
	ActorRef
	Incarnation string
	Status      string
	Machine     int64
	Sequence    int64
	Input       *string
	// Updated is the time of the last transition. Now is the time of the lock.
	Updated, Now time.Time
	Reason       *string
	// Sealed is the error if the input could not be decrypted. The input then has its stored
	// form.
	Sealed error
	// Snapshot is nil if there is none, or if the caller already has it.
	Snapshot *Snapshot
}

// NewActor is an actor to be created.
type NewActor struct {
	ActorRef
	Incarnation          string
	Machine              int64
	Origin               string
	CallerKind, CallerID string
	Input                *string
}

// Snapshot is the stored snapshot of an actor.
type Snapshot struct {
	Sequence int64
	Snapshot string
	Checksum string
	// Sealed is the error if the snapshot could not be decrypted.
	Sealed error
}

// ActorTimer is a stored timer of an actor.
type ActorTimer struct {
	ActorRef
	AlarmID  string
	Event    string
	Due      time.Time
	Sequence int64
	// Payload is the timer as JSON.
	Payload    string
	Path       string
	Generation int64
	Created    time.Time
	// Crashes is the number of processes that crashed while they fired the timer. Error is set
	// if the timer is quarantined because of crashes.
	Crashes int
	Error   *string
	// Suspect is true for a timer that may have crashed its process. Only DueTimers reads it.
	Suspect bool
	// Sealed is the error if the payload could not be decrypted.
	Sealed error
}

// ActorState is the content of an actor's row after a transition.
type ActorState struct {
	ActorRef
	Status            string
	Machine, Sequence int64
	Value             *string
	States            string
	Reason            *string
	At                time.Time
	// Snapshot is the snapshot of the last transition, nil if the stored snapshot is unchanged.
	Snapshot *Snapshot
	// Location is the location of the locked row. Only StepHeldActors uses it.
	Location string
}

// ActorEntry is an entry of an actor's log.
type ActorEntry struct {
	ActorRef
	Sequence             int64
	Kind                 string
	Event                *string
	CallerKind, CallerID *string
	Path                 *string
	Generation           *int64
	Key                  *string
	Said, Value          *string
	Checksum             string
	At, Recorded         time.Time
	// Sealed is the error if the event or the output could not be decrypted.
	Sealed error
}

// ActorKey is the idempotency key of an event.
type ActorKey struct {
	ActorRef
	Key      string
	Sequence int64
	Created  time.Time
	// Digest is a hash of the event and its caller. Nil: not known.
	Digest *string
}

// Checkpoint is the complete state of an actor after a transition.
type Checkpoint struct {
	ActorRef
	Sequence, Machine          int64
	Snapshot, Timers, Checksum string
	// Sealed is the error if the checkpoint could not be decrypted.
	Sealed error
}

// ActorPath identifies an actor in the tree of an actor.
type ActorPath struct {
	ActorRef
	Path       string
	Generation int64
}

func refColumns[R any](all []R, ref func(R) ActorRef) tuples {
	return tuples{
		column(all, func(r R) string { return ref(r).Type }),
		column(all, func(r R) string { return ref(r).ID }),
	}
}

func itself(r ActorRef) ActorRef { return r }

// EnterActors returns the statement that inserts the rows of new actors. Existing actors are
// not changed.
func (s *Store) EnterActors(all []NewActor, now Now) sqldb.Stmt {
	return s.stmt("ActorEnter", append(refColumns(all, func(n NewActor) ActorRef { return n.ActorRef }),
		column(all, func(n NewActor) string { return n.Incarnation }),
		column(all, func(n NewActor) int64 { return n.Machine }),
		column(all, func(n NewActor) string { return n.Origin }),
		column(all, func(n NewActor) string { return n.CallerKind }),
		column(all, func(n NewActor) string { return n.CallerID }),
		column(all, func(n NewActor) *string { return s.sealAny(actorInput, n.Input, n.Type, n.ID) }),
	), at(now))
}

// LeaveActors returns the statement that deletes the rows of actors that could not be started.
func (s *Store) LeaveActors(refs []ActorRef) sqldb.Stmt {
	return s.stmt("ActorLeave", refColumns(refs, itself))
}

// LockActors returns the statement that locks actors until the transaction ends, in order, and
// reads them. It reads a snapshot only if its sequence differs from the sequence in has.
func (s *Store) LockActors(refs []ActorRef, has []int64, now Now, found func(Actor)) sqldb.Stmt {
	lock := s.stmt("ActorLock", at(now), append(refColumns(refs, itself), has))
	lock.Row = s.actorRow(found)
	return lock
}

func (s *Store) actorRow(found func(Actor)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var a Actor
		var sequence *int64
		var snapshot, checksum *string
		err := scan(&a.Type, &a.ID, &a.Incarnation, &a.Status, &a.Machine, &a.Sequence, &a.Input, &a.Updated, &a.Now, &a.Reason, &sequence, &snapshot, &checksum)
		if err == nil {
			a.Input, a.Sealed = s.openAny(actorInput, a.Input, a.Type, a.ID)
			if sequence != nil && snapshot != nil {
				a.Snapshot = s.openSnapshot(a.ActorRef, *sequence, *snapshot, or(checksum, ""))
			}
			found(a)
		}
		return err
	}
}

// GetSnapshot returns the statement that reads the snapshot of an actor.
func (s *Store) GetSnapshot(ref ActorRef, found func(*Snapshot)) sqldb.Stmt {
	get := s.stmt("ActorSnapshot", ref.Type, ref.ID)
	get.Row = func(scan sqldb.Scan) error {
		var p Snapshot
		var checksum *string
		err := scan(&p.Sequence, &p.Snapshot, &checksum)
		if err == nil {
			found(s.openSnapshot(ref, p.Sequence, p.Snapshot, or(checksum, "")))
		}
		return err
	}
	return get
}

func (s *Store) openSnapshot(ref ActorRef, sequence int64, stored, checksum string) *Snapshot {
	p := &Snapshot{Sequence: sequence, Checksum: checksum}
	p.Snapshot, p.Sealed = s.open(actorSnapshot, stored, ref.Type, ref.ID)
	return p
}

// DueTimers returns the statement that reads the due timers of actors in firing order, at most
// limit for each actor.
func (s *Store) DueTimers(refs []ActorRef, limit int, now Now, found func(ActorTimer)) sqldb.Stmt {
	due := s.stmt("TimerDue", refColumns(refs, itself), at(now), limit)
	due.Row = func(scan sqldb.Scan) error {
		var t ActorTimer
		var payload *string // null only in rows that Perdure did not write
		err := scan(&t.Type, &t.ID, &t.AlarmID, &payload, &t.Due, &t.Crashes, &t.Suspect)
		t.Payload = or(payload, "")
		if err == nil {
			t.Payload, t.Sealed = s.open(alarmPayload, t.Payload, t.Type, t.ID, t.AlarmID)
			found(t)
		}
		return err
	}
	return due
}

// ListActorKeys returns the statement that reads the keys that are stored.
func (s *Store) ListActorKeys(keys []ActorKey, found func(ActorKey)) sqldb.Stmt {
	list := s.stmt("ActorKeyList", append(refColumns(keys, ActorKey.ref), column(keys, func(k ActorKey) string { return k.Key })))
	list.Row = func(scan sqldb.Scan) error {
		var k ActorKey
		err := scan(&k.Type, &k.ID, &k.Key, &k.Sequence, &k.Digest)
		if err == nil {
			found(k)
		}
		return err
	}
	return list
}

func (k ActorKey) ref() ActorRef { return k.ActorRef }

// StepActors returns the statement that writes the rows of actors after transitions, with their
// snapshots.
func (s *Store) StepActors(all []ActorState) sqldb.Stmt {
	return s.stmt("ActorStep", append(refColumns(all, func(a ActorState) ActorRef { return a.ActorRef }), s.stateColumns(all)...))
}

// StepHeldActors is StepActors for actors of which each has a Location.
func (s *Store) StepHeldActors(all []ActorState) sqldb.Stmt {
	return s.stmt("ActorStepHeld", append(tuples{column(all, func(a ActorState) string { return a.Location })}, s.stateColumns(all)...))
}

func (s *Store) stateColumns(all []ActorState) tuples {
	return tuples{
		column(all, func(a ActorState) string { return a.Status }),
		column(all, func(a ActorState) int64 { return a.Machine }),
		column(all, func(a ActorState) int64 { return a.Sequence }),
		column(all, func(a ActorState) *string { return a.Value }),
		column(all, func(a ActorState) string { return a.States }),
		column(all, func(a ActorState) *string { return a.Reason }),
		column(all, func(a ActorState) time.Time { return a.At }),
		column(all, func(a ActorState) *string {
			if a.Snapshot == nil {
				return nil
			}
			sealed := s.seal(actorSnapshot, a.Snapshot.Snapshot, a.Type, a.ID)
			return &sealed
		}),
		column(all, func(a ActorState) *string {
			if a.Snapshot == nil {
				return nil
			}
			return &a.Snapshot.Checksum
		}),
	}
}

// LogActors returns the statement that appends to the logs of actors.
func (s *Store) LogActors(all []ActorEntry) sqldb.Stmt {
	return s.stmt("ActorLogInsert", append(refColumns(all, func(e ActorEntry) ActorRef { return e.ActorRef }),
		column(all, func(e ActorEntry) int64 { return e.Sequence }),
		column(all, func(e ActorEntry) string { return e.Kind }),
		column(all, func(e ActorEntry) *string { return s.sealAny(logEvent, e.Event, e.place()...) }),
		column(all, func(e ActorEntry) *string { return e.CallerKind }),
		column(all, func(e ActorEntry) *string { return e.CallerID }),
		column(all, func(e ActorEntry) *string { return e.Path }),
		column(all, func(e ActorEntry) *int64 { return e.Generation }),
		column(all, func(e ActorEntry) *string { return e.Key }),
		column(all, func(e ActorEntry) *string { return s.sealAny(logSaid, e.Said, e.place()...) }),
		column(all, func(e ActorEntry) *string { return e.Value }),
		column(all, func(e ActorEntry) string { return e.Checksum }),
		column(all, func(e ActorEntry) time.Time { return e.At }),
		column(all, func(e ActorEntry) time.Time { return e.Recorded }),
	))
}

// place returns the key of the entry's row.
func (e ActorEntry) place() []string {
	return []string{e.Type, e.ID, strconv.FormatInt(e.Sequence, 10)}
}

// place returns the key of the checkpoint's row.
func (c Checkpoint) place() []string {
	return []string{c.Type, c.ID, strconv.FormatInt(c.Sequence, 10)}
}

// InsertActorKeys returns the statement that stores keys.
func (s *Store) InsertActorKeys(all []ActorKey) sqldb.Stmt {
	return s.stmt("ActorKeyInsert", append(refColumns(all, ActorKey.ref),
		column(all, func(k ActorKey) string { return k.Key }),
		column(all, func(k ActorKey) int64 { return k.Sequence }),
		column(all, func(k ActorKey) time.Time { return k.Created }),
		column(all, func(k ActorKey) *string { return k.Digest }),
	))
}

func (t ActorTimer) ref() ActorRef { return t.ActorRef }

// PutTimers returns the statement that schedules timers. It replaces timers with the same ids.
func (s *Store) PutTimers(all []ActorTimer) sqldb.Stmt {
	return s.stmt("TimerPut", append(refColumns(all, ActorTimer.ref),
		column(all, func(t ActorTimer) string { return t.AlarmID }),
		column(all, func(t ActorTimer) string { return t.Event }),
		column(all, func(t ActorTimer) time.Time { return t.Due }),
		column(all, func(t ActorTimer) int64 { return t.Sequence }),
		column(all, func(t ActorTimer) string { return s.seal(alarmPayload, t.Payload, t.Type, t.ID, t.AlarmID) }),
		column(all, func(t ActorTimer) string { return t.Path }),
		column(all, func(t ActorTimer) int64 { return t.Generation }),
		column(all, func(t ActorTimer) time.Time { return t.Created }),
	))
}

// DeleteTimers returns the statement that removes timers by their ids.
func (s *Store) DeleteTimers(all []ActorTimer) sqldb.Stmt {
	return s.stmt("TimerDelete", append(refColumns(all, ActorTimer.ref), column(all, func(t ActorTimer) string { return t.AlarmID })))
}

// DeleteAllTimers returns the statement that removes the timers of actors inside
// trees.
func (s *Store) DeleteAllTimers(all []ActorPath) sqldb.Stmt {
	return s.stmt("TimerDeleteAll", append(refColumns(all, func(p ActorPath) ActorRef { return p.ActorRef }),
		column(all, func(p ActorPath) string { return p.Path }),
		column(all, func(p ActorPath) int64 { return p.Generation }),
	))
}

// ParkTimers returns the statement that suspends the timers of actors. UnparkTimers reverses
// it.
func (s *Store) ParkTimers(refs []ActorRef) sqldb.Stmt {
	return s.stmt("TimerPark", "quarantined", refColumns(refs, itself))
}

// UnparkTimers is the reverse of ParkTimers.
func (s *Store) UnparkTimers(refs []ActorRef) sqldb.Stmt {
	return s.stmt("TimerPark", "pending", refColumns(refs, itself))
}

// PostponeTimers returns the statement that postpones the due timers of actors by the time for
// which they have been due, between least and most.
func (s *Store) PostponeTimers(refs []ActorRef, least, most time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TimerPostpone", at(now), least.Microseconds(), most.Microseconds(), refColumns(refs, itself))
}

// InsertCheckpoints returns the statement that stores checkpoints.
func (s *Store) InsertCheckpoints(all []Checkpoint) sqldb.Stmt {
	return s.stmt("CheckpointInsert", append(refColumns(all, func(c Checkpoint) ActorRef { return c.ActorRef }),
		column(all, func(c Checkpoint) int64 { return c.Sequence }),
		column(all, func(c Checkpoint) int64 { return c.Machine }),
		column(all, func(c Checkpoint) string { return s.seal(pointSnapshot, c.Snapshot, c.place()...) }),
		column(all, func(c Checkpoint) string { return s.seal(pointTimers, c.Timers, c.place()...) }),
		column(all, func(c Checkpoint) string { return c.Checksum }),
	))
}

// ImportActor returns the statement that records the import of an actor. fresh is set to 1 if
// the actor was not imported before.
func (s *Store) ImportActor(ref ActorRef, now Now, fresh *int64) sqldb.Stmt {
	return counted(s.stmt("ActorImport", ref.Type, ref.ID, at(now)), fresh)
}
