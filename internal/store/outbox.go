package store

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// ErrClockExhausted is returned if the outbox counter has no numbers left in this incarnation,
// or if its row is missing.
var ErrClockExhausted = errors.New("outbox counter is exhausted or missing: start a new incarnation")

// Clock is the state of the outbox counter.
type Clock struct {
	Incarnation uint16
	Counter     uint64
}

// Entry is one row of the outbox.
type Entry struct {
	Stamp   []byte
	Unit    string
	Payload string
	Refs    *string // JSON, nil if there are no references
	Created time.Time
}

// Reserve returns the statements that reserve n numbers and read the clock afterwards: the
// numbers are clock.Counter-n+1 to clock.Counter. They must be the last statements of their
// transaction that take a lock.
func (s *Store) Reserve(n int, clock *Clock) []sqldb.Stmt {
	advance := s.stmt("ClockAdvance", int64(n), int64(math.MaxInt64)-int64(n))
	advance.Done, advance.Fail = sqldb.One(ErrClockExhausted), exhausted
	return []sqldb.Stmt{advance, s.ReadClock(clock)}
}

// GuardCounter returns the statement that makes the server end a transaction of a caller that
// holds the counter, if its process has stopped before COMMIT. There is none if the database has
// no such limit for one transaction.
func (s *Store) GuardCounter() []sqldb.Stmt {
	if s.text("CounterGuard") == "" {
		return nil
	}
	return []sqldb.Stmt{s.call(s.stmt("CounterGuard"))}
}

// LockClock returns the statement that locks the clock and reads it.
func (s *Store) LockClock(clock *Clock) sqldb.Stmt {
	lock := s.clock("ClockLock", clock)
	lock.Fail = exhausted
	return lock
}

// ReadClock returns the statement that reads the clock.
func (s *Store) ReadClock(clock *Clock) sqldb.Stmt { return s.clock("ClockRead", clock) }

func (s *Store) clock(statement string, clock *Clock) sqldb.Stmt {
	read := twoColumns(s.stmt(statement), func(incarnation, counter int64) {
		*clock = Clock{Incarnation: uint16(incarnation), Counter: uint64(counter)}
	})
	read.Done = sqldb.One(ErrClockExhausted)
	return read
}

// Restart returns the statement that starts the next incarnation.
func (s *Store) Restart() sqldb.Stmt {
	return needsOne(s.stmt("ClockRestart"), ErrClockExhausted)
}

// Bounds of one statement that inserts entries. The number of rows is small enough to keep the
// statements prepared, and the size is small enough for any server.
const (
	insertRows  = 16
	insertBytes = 1 << 20
)

// InsertEntries returns the statements that add entries to the outbox. Each statement inserts
// several entries, because the counter is locked while they run.
func (s *Store) InsertEntries(entries []Entry) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for len(entries) > 0 {
		n, size := 1, len(entries[0].Payload)
		for n < len(entries) && n < insertRows && size+len(entries[n].Payload) <= insertBytes {
			size += len(entries[n].Payload)
			n++
		}
		stmts = append(stmts, s.insertEntries(entries[:n]))
		entries = entries[n:]
	}
	return stmts
}

func (s *Store) insertEntries(entries []Entry) sqldb.Stmt {
	var args []any
	for _, e := range entries {
		args = append(args, e.Stamp, e.Unit, e.Payload, e.Refs, e.Created)
	}
	insert := s.stmt("OutboxInsert", args...)
	if len(entries) > 1 { // only for placeholders without numbers: PostgreSQL has Append
		insert.SQL += strings.Repeat(", (?, ?, ?, ?, ?)", len(entries)-1)
	}
	return insert
}

// Draft is an entry without a stamp. Its payload has the nonce, 20 characters, in all places
// where the hex digits of the stamp must be.
type Draft struct {
	Unit    string
	Payload string
	Nonce   string
	Refs    *string
}

// CanAppend reports whether the database has Append.
func (s *Store) CanAppend() bool { return s.text("OutboxAppend") != "" }

// Append returns the statement that reserves numbers for the drafts and inserts them as
// entries. It must be the last statement before COMMIT.
func (s *Store) Append(drafts []Draft, created time.Time) sqldb.Stmt {
	n := len(drafts)
	units, payloads, nonces, refs := make([]string, n), make([]string, n), make([]string, n), make([]*string, n)
	for i, d := range drafts {
		units[i], payloads[i], nonces[i], refs[i] = d.Unit, d.Payload, d.Nonce, d.Refs
	}
	stmt := s.stmt("OutboxAppend", int64(n), int64(n), created, units, payloads, nonces, refs)
	stmt.Fail = exhausted
	return stmt
}

// exhausted marks the error of a locked counter. It detects an exhausted counter by an overflowing addition, and a missing counter by a
// null stamp.
func exhausted(err error) error {
	var timeout *sqldb.LockTimeout
	if errors.As(err, &timeout) {
		timeout.Counter = true
		return err
	}
	var e interface{ SQLState() string }
	if errors.As(err, &e) && (e.SQLState() == "22003" || e.SQLState() == "23502") {
		return fmt.Errorf("%w: %w", ErrClockExhausted, err)
	}
	return err
}

// ListEntries returns the statement that reads up to limit entries after a
// stamp, in order.
func (s *Store) ListEntries(after []byte, limit int, each func(Entry) error) sqldb.Stmt {
	return withRow(s.stmt("OutboxList", after, limit), entryRow(each))
}

// EntryByUnit returns the statement that reads the entry of a unit.
func (s *Store) EntryByUnit(unit string, each func(Entry) error) sqldb.Stmt {
	return withRow(s.stmt("OutboxByUnit", unit), entryRow(each))
}

func entryRow(each func(Entry) error) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var e Entry
		if err := scan(&e.Stamp, &e.Unit, &e.Payload, &e.Refs, &e.Created); err != nil {
			return err
		}
		e.Created = e.Created.UTC()
		return each(e)
	}
}

// Stamps returns the statement that reads up to limit stamps after a stamp.
func (s *Store) Stamps(after []byte, limit int, each func([]byte)) sqldb.Stmt {
	return oneColumn(s.stmt("OutboxStamps", after, limit), each)
}

// OldestEntries returns the statement that reads the stamp and creation time of the oldest
// entries, none after upTo.
func (s *Store) OldestEntries(upTo []byte, limit int, each func(stamp []byte, created time.Time)) sqldb.Stmt {
	return twoColumns(s.stmt("OutboxOldest", upTo, limit), each)
}

// DeleteEntries returns the statement that removes the entries up to a stamp.
func (s *Store) DeleteEntries(upTo []byte) sqldb.Stmt { return s.stmt("OutboxDelete", upTo) }

// Incarnation is the start of an incarnation of the outbox after the first.
type Incarnation struct {
	Number  uint16
	After   []byte // the last stamp of the previous incarnation
	Reason  string
	Created time.Time
}

// InsertIncarnation returns the statement that records an incarnation.
func (s *Store) InsertIncarnation(i Incarnation) sqldb.Stmt {
	return s.stmt("IncarnationInsert", int64(i.Number), i.After, i.Reason, i.Created)
}

// Incarnations returns the statement that reads the recorded incarnations.
func (s *Store) Incarnations(each func(Incarnation)) sqldb.Stmt {
	list := s.stmt("IncarnationList")
	list.Row = func(scan sqldb.Scan) error {
		var i Incarnation
		var number int64
		if err := scan(&number, &i.After, &i.Reason, &i.Created); err != nil {
			return err
		}
		i.Number, i.Created = uint16(number), i.Created.UTC()
		each(i)
		return nil
	}
	return list
}
