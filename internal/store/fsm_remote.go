package store

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// RemoteDefinition is a definition whose steps are HTTP endpoints. Spec and Secrets are JSON.
type RemoteDefinition struct {
	Definition
	Spec, Secrets    string
	Created, Updated time.Time
	// Sealed is the error if the secrets could not be decrypted. They then have their stored
	// form.
	Sealed error
}

// RemoteDefinitions returns the statement that reads all remote definitions, the newest version
// of each first.
func (s *Store) RemoteDefinitions(found func(RemoteDefinition)) sqldb.Stmt {
	return withRow(s.stmt("RemoteList"), s.remoteRow(found))
}

// GetRemote returns the statement that locks and reads a remote definition, if it exists.
func (s *Store) GetRemote(d Definition, found func(RemoteDefinition)) sqldb.Stmt {
	return withRow(s.stmt("RemoteGet", d.FSM, d.Version), s.remoteRow(found))
}

func (s *Store) remoteRow(found func(RemoteDefinition)) func(sqldb.Scan) error {
	return readRow(func(r RemoteDefinition) {
		r.Created, r.Updated = r.Created.UTC(), r.Updated.UTC()
		r.Secrets, r.Sealed = s.open(remoteSecrets, r.Secrets, r.FSM, strconv.Itoa(r.Version))
		found(r)
	}, func(r *RemoteDefinition) []any {
		return []any{&r.FSM, &r.Version, &r.Spec, &r.Secrets, &r.Created, &r.Updated}
	})
}

// InsertRemote returns the statement that adds a remote definition. added is set to whether it
// is new.
func (s *Store) InsertRemote(r RemoteDefinition, now Now, added *bool) sqldb.Stmt {
	return changed(s.stmt("RemoteInsert", r.FSM, r.Version, r.Spec, s.sealSecrets(r), at(now)), added)
}

func (s *Store) sealSecrets(r RemoteDefinition) string {
	return s.seal(remoteSecrets, r.Secrets, r.FSM, strconv.Itoa(r.Version))
}

// UpdateRemote returns the statement that changes a remote definition.
func (s *Store) UpdateRemote(r RemoteDefinition, now Now) sqldb.Stmt {
	return s.stmt("RemoteUpdate", r.Spec, s.sealSecrets(r), at(now), r.FSM, r.Version)
}

// DeleteRemote returns the statements that remove a remote definition and its record for tools.
// removed is set to whether it existed.
func (s *Store) DeleteRemote(d Definition, removed *bool) []sqldb.Stmt {
	remove := changed(s.stmt("RemoteDelete", d.FSM, d.Version), removed)
	return []sqldb.Stmt{remove, s.stmt("DefinitionForget", d.FSM, d.Version)}
}
