package store

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/perdure/perdure/internal/sqldb"
)

// StateType is a type of JSON that states of live instances of a definition have.
type StateType struct {
	Definition
	// Type is the type, in the words of the database.
	Type string
	// Key is the id of the key with which the states are encrypted, "" if they are not.
	Key string
	// Example is the id of one of the instances, Count their number.
	Example string
	Count   int
}

// StateTypes returns the statement that groups the states of live instances.
func (s *Store) StateTypes(found func(StateType)) sqldb.Stmt {
	return read(s.stmt("StateTypes"), found, func(t *StateType) []any {
		return []any{&t.FSM, &t.Version, &t.Type, &t.Key, &t.Example, &t.Count}
	})
}

// RecordedPolicies is a row of policies.
type RecordedPolicies struct {
	Definition
	PolicySet
}

// AllPolicies returns the statement that reads the policy sets of all definitions.
func (s *Store) AllPolicies(found func(RecordedPolicies)) sqldb.Stmt {
	return read(s.stmt("PolicyAll"), found, func(p *RecordedPolicies) []any { return []any{&p.FSM, &p.Version, &p.Since, &p.Retry} })
}

// ActorTypes returns the statement that counts the active actors of types that are not stored
// statecharts.
func (s *Store) ActorTypes(found func(name string, n int)) sqldb.Stmt {
	return twoColumns(s.stmt("ActorTypes"), found)
}

// Sum is a snapshot with its checksums.
type Sum struct {
	ActorRef
	Status   string
	Sequence int64
	Snapshot *string
	// Checksum is stored with the snapshot, Logged with the transition in the log. They are nil
	// if there is none.
	Checksum, Logged *string
	// Sealed is the error if the snapshot could not be decrypted.
	Sealed error
}

// Fault describes what is wrong with the checksums. It returns "" if they match.
func (s Sum) Fault() string {
	if s.Snapshot == nil || s.Sealed != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(*s.Snapshot))
	switch {
	case or(s.Checksum, "") != hex.EncodeToString(sum[:]):
		return "the snapshot does not match its checksum"
	case s.Logged != nil && *s.Logged != *s.Checksum:
		return "the snapshot and the log have different checksums"
	}
	return ""
}

// ActorSums returns the statement that reads the snapshots of the actors after one.
func (s *Store) ActorSums(after ActorRef, limit int, found func(Sum)) sqldb.Stmt {
	return read(s.stmt("ActorSums", after.Type, after.ID, limit), func(a Sum) {
		a.Snapshot, a.Sealed = s.openAny(actorSnapshot, a.Snapshot, a.Type, a.ID)
		found(a)
	}, func(a *Sum) []any {
		return []any{&a.Type, &a.ID, &a.Status, &a.Sequence, &a.Snapshot, &a.Checksum, &a.Logged}
	})
}

// CheckpointSums returns the statement that reads the checkpoints after one.
func (s *Store) CheckpointSums(after ActorRef, sequence int64, limit int, found func(Sum)) sqldb.Stmt {
	return read(s.stmt("CheckpointSums", after.Type, after.ID, sequence, limit), func(a Sum) {
		place := Checkpoint{ActorRef: a.ActorRef, Sequence: a.Sequence}.place()
		a.Snapshot, a.Sealed = s.openAny(pointSnapshot, a.Snapshot, place...)
		found(a)
	}, func(a *Sum) []any {
		return []any{&a.Type, &a.ID, &a.Sequence, &a.Snapshot, &a.Checksum, &a.Logged}
	})
}

// OpenSealed decrypts a value of an encrypted column. It fails with a *seal.SealedError if this
// process has no key for it.
func (s *Store) OpenSealed(r SealedRow) error {
	_, err := s.keys.Open(r.place, r.Stored)
	return err
}

// MachineSums returns the statement that reads all stored statecharts with their checksums.
func (s *Store) MachineSums(found func(m Machine, checksum string)) sqldb.Stmt {
	list := s.stmt("MachineSums")
	list.Row = func(scan sqldb.Scan) error {
		var m Machine
		var checksum string
		if err := scan(&m.Name, &m.Version, &m.Document, &m.Options, &checksum); err != nil {
			return err
		}
		found(m, checksum)
		return nil
	}
	return list
}
