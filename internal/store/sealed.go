package store

import (
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
)

// The columns that are sealed where there are keys, as their places are named.
const (
	hookPayload    = "hooks.payload"
	alarmPayload   = "alarms.payload"
	instanceState  = "instances.state"
	finishedResult = "finished.result"
	signalPayload  = "signals.payload"
	remoteSecrets  = "remote_definitions.secrets"
	actorInput     = "actors.input"
	actorSnapshot  = "snapshots.snapshot"
	pointSnapshot  = "checkpoints.snapshot"
	pointTimers    = "checkpoints.timers"
	logEvent       = "actor_log.event"
	logSaid        = "actor_log.said"
)

// UseKeys makes the store seal payloads with these keys from now on, and open what
// was sealed with one of them. It is called before the store is used.
func (s *Store) UseKeys(keys *seal.Ring) { s.keys = keys }

// Keys returns the keys of the store.
func (s *Store) Keys() *seal.Ring { return s.keys }

// seal returns what to store of a value.
func (s *Store) seal(column, value string, key ...string) string {
	if s.keys.Empty() && seal.Bare(value) {
		return value
	}
	return s.keys.Seal(seal.Place(column, key...), value)
}

// open returns the value of what is stored. If there is no key for it, it returns
// what is stored, and why.
func (s *Store) open(column, stored string, key ...string) (string, error) {
	if seal.Bare(stored) {
		return stored, nil
	}
	value, err := s.keys.Open(seal.Place(column, key...), stored)
	if err != nil {
		return stored, err
	}
	return value, nil
}

// sealAny is seal for a value that may be null.
func (s *Store) sealAny(column string, value *string, key ...string) *string {
	if value == nil {
		return nil
	}
	if s.keys.Empty() && seal.Bare(*value) {
		return value
	}
	sealed := s.seal(column, *value, key...)
	return &sealed
}

// openAny is open for a value that may be null.
func (s *Store) openAny(column string, stored *string, key ...string) (*string, error) {
	if stored == nil {
		return nil, nil
	}
	value, err := s.open(column, *stored, key...)
	return &value, err
}

// SealedColumn is a column whose values are sealed.
type SealedColumn struct {
	// Name is the table and the column.
	Name string
	// first is before the key of every row.
	first string
	// list and update are the names of the statements.
	list, update string
	// parts is how many columns of the list, from the second on, name the place;
	// none: the key does.
	parts int
}

// noID is before every UUID.
const noID = "00000000-0000-0000-0000-000000000000"

var sealedColumns = []SealedColumn{
	{Name: hookPayload, list: "HookSealed", update: "HookReseal"},
	{Name: alarmPayload, first: `["", "", ""]`, list: "AlarmSealed", update: "AlarmReseal", parts: 3},
	{Name: instanceState, first: noID, list: "StateSealed", update: "StateReseal"},
	{Name: instanceState, first: noID, list: "EndStateSealed", update: "EndStateReseal"},
	{Name: finishedResult, first: noID, list: "ResultSealed", update: "ResultReseal"},
	{Name: signalPayload, first: "0", list: "SignalSealed", update: "SignalReseal", parts: 2},
	{Name: remoteSecrets, list: "RemoteSealed", update: "RemoteReseal"},
	{Name: actorInput, first: `["", ""]`, list: "InputSealed", update: "InputReseal", parts: 2},
	{Name: actorSnapshot, first: `["", ""]`, list: "SnapshotSealed", update: "SnapshotReseal", parts: 2},
	{Name: pointSnapshot, first: `["", "", -1]`, list: "PointSnapshotSealed", update: "PointSnapshotReseal", parts: 3},
	{Name: pointTimers, first: `["", "", -1]`, list: "PointTimersSealed", update: "PointTimersReseal", parts: 3},
	{Name: logEvent, first: `["", "", -1]`, list: "LogEventSealed", update: "LogEventReseal", parts: 3},
	{Name: logSaid, first: `["", "", -1]`, list: "LogSaidSealed", update: "LogSaidReseal", parts: 3},
	{Name: alarmPayload, first: `["", "", ""]`, list: "TimerSealed", update: "TimerReseal", parts: 3},
}

// SealedColumns returns the columns whose values are sealed, as far as this
// database has them.
func (s *Store) SealedColumns() []SealedColumn {
	var all []SealedColumn
	for _, c := range sealedColumns {
		if s.texts[c.list] != "" {
			all = append(all, c)
		}
	}
	return all
}

// SealedRow is a value of such a column, as it is stored.
type SealedRow struct {
	// Key is the key of the row.
	Key, Stored string
	place       string
}

// SealedRows returns the statement that reads the next rows after a key, "" for
// the first ones.
func (s *Store) SealedRows(c SealedColumn, after string, limit int, found func(SealedRow)) sqldb.Stmt {
	if after == "" {
		after = c.first
	}
	list := s.stmt(c.list, after, limit)
	list.Row = func(scan sqldb.Scan) error {
		r, parts := SealedRow{}, make([]string, c.parts)
		to := []any{&r.Key}
		for i := range parts {
			to = append(to, &parts[i])
		}
		if err := scan(append(to, &r.Stored)...); err != nil {
			return err
		}
		if c.parts == 0 {
			parts = []string{r.Key}
		}
		r.place = seal.Place(c.Name, parts...)
		found(r)
		return nil
	}
	return list
}

// Reseal returns the statement that seals a value with the key that seals now.
// changed learns whether it still was as it was read. It fails with a
// *seal.SealedError if there is no key for it.
func (s *Store) Reseal(c SealedColumn, r SealedRow, changed *bool) (sqldb.Stmt, error) {
	value, err := s.keys.Open(r.place, r.Stored)
	if err != nil {
		return sqldb.Stmt{}, err
	}
	update := s.stmt(c.update, s.keys.Seal(r.place, value), r.Key, r.Stored)
	update.Done = func(rows int64) error {
		*changed = rows == 1
		return nil
	}
	return update, nil
}
