package store

import (
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
)

// place is a column whose values are encrypted if the store has keys.
type place int

// The encrypted columns. Each has an entry in places.
const (
	hookPayload place = iota
	alarmPayload
	instanceState
	finishedResult
	signalPayload
	remoteSecrets
	actorInput
	actorSnapshot
	pointSnapshot
	pointTimers
	logEvent
	logSaid
	requestResponse
	journalResult
	placeCount
)

// places lists all encrypted columns. It is used to encrypt values, and to reencrypt and count
// them when the keys change.
var places = [placeCount]struct {
	// name is the table and the column. The encryption of a value depends on it.
	name string
	// rows are the statements that find all values: one entry for each table that has them, or
	// for each group of rows.
	rows []rows
}{
	hookPayload: {"hooks.payload", []rows{{first: noID, list: "HookSealed", update: "HookReseal", parts: 1}}},
	alarmPayload: {"alarms.payload", []rows{
		{first: `["", "", ""]`, list: "AlarmSealed", update: "AlarmReseal", parts: 3},
		{first: `["", "", ""]`, list: "TimerSealed", update: "TimerReseal", parts: 3},
	}},
	instanceState: {"instances.state", []rows{
		{first: noID, list: "StateSealed", update: "StateReseal"},
		{first: noID, list: "EndStateSealed", update: "EndStateReseal"},
	}},
	finishedResult:  {"finished.result", []rows{{first: noID, list: "ResultSealed", update: "ResultReseal"}}},
	signalPayload:   {"signals.payload", []rows{{first: "0", list: "SignalSealed", update: "SignalReseal", parts: 2}}},
	remoteSecrets:   {"remote_definitions.secrets", []rows{{list: "RemoteSealed", update: "RemoteReseal"}}},
	actorInput:      {"actors.input", []rows{{first: `["", ""]`, list: "InputSealed", update: "InputReseal", parts: 2}}},
	actorSnapshot:   {"snapshots.snapshot", []rows{{first: `["", ""]`, list: "SnapshotSealed", update: "SnapshotReseal", parts: 2}}},
	pointSnapshot:   {"checkpoints.snapshot", []rows{{first: `["", "", -1]`, list: "PointSnapshotSealed", update: "PointSnapshotReseal", parts: 3}}},
	pointTimers:     {"checkpoints.timers", []rows{{first: `["", "", -1]`, list: "PointTimersSealed", update: "PointTimersReseal", parts: 3}}},
	logEvent:        {"actor_log.event", []rows{{first: `["", "", -1]`, list: "LogEventSealed", update: "LogEventReseal", parts: 3}}},
	logSaid:         {"actor_log.said", []rows{{first: `["", "", -1]`, list: "LogSaidSealed", update: "LogSaidReseal", parts: 3}}},
	requestResponse: {"idempotency.response", []rows{{first: `["", ""]`, list: "ResponseSealed", update: "ResponseReseal", parts: 2}}},
	journalResult:   {"journal.result", []rows{{first: `["` + noID + `", ""]`, list: "JournalSealed", update: "JournalReseal", parts: 2}}},
}

// rows are the statements that iterate over the values of a column.
type rows struct {
	// first sorts before the key of every row.
	first string
	// list and update are the names of the statements.
	list, update string
	// parts is the number of columns of the list, from the second on, that form the place. If
	// it is 0, the key forms the place.
	parts int
}

// of returns the place of a value in a row.
func (p place) of(key ...string) string { return seal.Place(places[p].name, key...) }

// UseKeys makes the store encrypt payloads with these keys, and decrypt values that were
// encrypted with one of them. It must be called before the store is used.
func (s *Store) UseKeys(keys *seal.Ring) { s.keys = keys }

// Keys returns the keys of the store.
func (s *Store) Keys() *seal.Ring { return s.keys }

// seal returns the stored form of a value.
func (s *Store) seal(column place, value string, key ...string) string {
	if s.keys.Empty() && seal.Bare(value) {
		return value
	}
	return s.keys.Seal(column.of(key...), value)
}

// open decrypts a stored value. If there is no key for it, it returns the stored form and an
// error.
func (s *Store) open(column place, stored string, key ...string) (string, error) {
	if seal.Bare(stored) {
		return stored, nil
	}
	value, err := s.keys.Open(column.of(key...), stored)
	if err != nil {
		return stored, err
	}
	return value, nil
}

// sealAny is seal for a value that may be null.
func (s *Store) sealAny(column place, value *string, key ...string) *string {
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
func (s *Store) openAny(column place, stored *string, key ...string) (*string, error) {
	if stored == nil {
		return nil, nil
	}
	value, err := s.open(column, *stored, key...)
	return &value, err
}

// SealedColumn is an encrypted column, or a part of its rows.
type SealedColumn struct {
	// Name is the table and the column.
	Name  string
	place place
	rows
}

// noID sorts before every UUID.
const noID = "00000000-0000-0000-0000-000000000000"

// SealedColumns returns the encrypted columns that this database has.
func (s *Store) SealedColumns() []SealedColumn {
	var all []SealedColumn
	for p, column := range places {
		for _, rows := range column.rows {
			if s.text(rows.list) != "" {
				all = append(all, SealedColumn{Name: column.name, place: place(p), rows: rows})
			}
		}
	}
	return all
}

// SealedRow is a value of an encrypted column in its stored form.
type SealedRow struct {
	// Key is the key of the row.
	Key, Stored string
	place       string
}

// SealedRows returns the statement that reads the next rows after a key, "" for the first rows.
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
		r.place = c.place.of(parts...)
		found(r)
		return nil
	}
	return list
}

// Reseal returns the statement that encrypts a value with the current key. did is set to
// whether the value was unchanged since it was read. It fails with a *seal.SealedError if there
// is no key for the value.
func (s *Store) Reseal(c SealedColumn, r SealedRow, did *bool) (sqldb.Stmt, error) {
	value, err := s.keys.Open(r.place, r.Stored)
	if err != nil {
		return sqldb.Stmt{}, err
	}
	return changed(s.stmt(c.update, s.keys.Seal(r.place, value), r.Key, r.Stored), did), nil
}
