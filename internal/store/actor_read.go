package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Machine is a version of a stored statechart.
type Machine struct {
	Name              string
	Version           int64
	Document, Options string
	Created           time.Time
}

// InsertMachine returns the statement that stores a document as the next version of its name,
// unless it equals the newest version.
func (s *Store) InsertMachine(name, document, options, checksum string, now Now) sqldb.Stmt {
	return s.stmt("MachineInsert", name, document, options, checksum, at(now))
}

// NewestMachine returns the statement that reads the newest version of a name.
func (s *Store) NewestMachine(name string, found func(Machine)) sqldb.Stmt {
	return machines(s.stmt("MachineNewest", name), found)
}

// GetMachine returns the statement that reads a version of a name.
func (s *Store) GetMachine(name string, version int64, found func(Machine)) sqldb.Stmt {
	return machines(s.stmt("MachineGet", name, version), found)
}

// ListMachines returns the statement that reads the newest version of every
// name.
func (s *Store) ListMachines(found func(Machine)) sqldb.Stmt {
	return machines(s.stmt("MachineList"), found)
}

func machines(stmt sqldb.Stmt, found func(Machine)) sqldb.Stmt {
	stmt.Row = func(scan sqldb.Scan) error {
		var m Machine
		err := scan(&m.Name, &m.Version, &m.Document, &m.Options, &m.Created)
		if err == nil {
			found(m)
		}
		return err
	}
	return stmt
}

// ActorRecord is all stored data of an actor, except its log and timers.
type ActorRecord struct {
	ActorRef
	Incarnation, Status  string
	Machine, Sequence    int64
	Value                *string
	States, Origin       string
	CallerKind, CallerID string
	Input, Reason        *string
	Created, Updated     time.Time
	// SnapshotSequence, Snapshot and Checksum are nil if there is no snapshot. They are omitted
	// from lists.
	SnapshotSequence   *int64
	Snapshot, Checksum *string
	// Sealed is the error if the input or the snapshot could not be decrypted.
	Sealed error
}

// GetActor returns the statement that reads an actor.
func (s *Store) GetActor(ref ActorRef, found func(ActorRecord)) sqldb.Stmt {
	get := s.stmt("ActorGet", ref.Type, ref.ID)
	get.Row = func(scan sqldb.Scan) error {
		var a ActorRecord
		err := scan(append(a.columns(), &a.SnapshotSequence, &a.Snapshot, &a.Checksum)...)
		if err == nil {
			var other error
			a.Input, a.Sealed = s.openAny(actorInput, a.Input, a.Type, a.ID)
			if a.Snapshot, other = s.openAny(actorSnapshot, a.Snapshot, a.Type, a.ID); a.Sealed == nil {
				a.Sealed = other
			}
			found(a)
		}
		return err
	}
	return get
}

func (a *ActorRecord) columns() []any {
	return []any{
		&a.Type, &a.ID, &a.Incarnation, &a.Status, &a.Machine, &a.Sequence, &a.Value, &a.States, &a.Origin, &a.CallerKind, &a.CallerID, &a.Input, &a.Reason,
		&a.Created, &a.Updated,
	}
}

// ActorVersion returns the statement that reads the incarnation of an actor and the number of
// its transitions.
func (s *Store) ActorVersion(ref ActorRef, found func(incarnation string, sequence int64)) sqldb.Stmt {
	get := s.stmt("ActorVersion", ref.Type, ref.ID)
	get.Row = func(scan sqldb.Scan) error {
		var incarnation string
		var sequence int64
		err := scan(&incarnation, &sequence)
		if err == nil {
			found(incarnation, sequence)
		}
		return err
	}
	return get
}
