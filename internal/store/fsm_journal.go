package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// JournalKind is the kind of a row of the journal.
type JournalKind int

// The kinds of rows. The numbers are stored.
const (
	JournalStep    JournalKind = 1 // the result of a step
	JournalTx      JournalKind = 2 // the result of a transaction
	JournalFailure JournalKind = 3 // the failures of a step: changed with each failure
	JournalWait    JournalKind = 4 // an open wait
	JournalWoken   JournalKind = 5 // the end of a wait
	JournalValue   JournalKind = 6 // a recorded value, such as the time
	JournalChild   JournalKind = 7 // a child that was started
	JournalUndo    JournalKind = 8 // compensation
	JournalOnce    JournalKind = 9 // the start of a step that runs at most once
)

// JournalRow is a row of the journal of a durable function.
type JournalRow struct {
	Instance string
	Key      string
	Seq      int
	Kind     JournalKind
	Attempt  int
	Result   *string // JSON
	Error    *string
	Worker   string
	Began    time.Time
	Ended    time.Time
	// Sealed is the error if the result could not be decrypted. The result then has its stored
	// form.
	Sealed error
}

// InsertJournal returns the statement that adds rows. clock is the time of this process: the
// rows get the time of the server, minus the time that has passed since they were made.
func (s *Store) InsertJournal(worker string, all []JournalRow, clock time.Time, now Now) sqldb.Stmt {
	return s.stmt("JournalInsert", worker, s.journalColumns(all, clock), at(now))
}

// FailJournal returns the statement that writes the rows of failures.
func (s *Store) FailJournal(worker string, all []JournalRow, clock time.Time, now Now) sqldb.Stmt {
	return s.stmt("JournalFail", worker, s.journalColumns(all, clock), at(now))
}

func (s *Store) journalColumns(all []JournalRow, clock time.Time) tuples {
	return tuples{
		column(all, func(r JournalRow) string { return r.Instance }),
		column(all, func(r JournalRow) string { return r.Key }),
		column(all, func(r JournalRow) int { return r.Seq }),
		column(all, func(r JournalRow) int { return int(r.Kind) }),
		column(all, func(r JournalRow) int { return r.Attempt }),
		column(all, func(r JournalRow) *string { return s.sealAny(journalResult, r.Result, r.Instance, r.Key) }),
		column(all, func(r JournalRow) *string { return r.Error }),
		column(all, func(r JournalRow) int64 { return max(r.Ended.Sub(r.Began), 0).Microseconds() }),
		column(all, func(r JournalRow) int64 { return max(clock.Sub(r.Ended), 0).Microseconds() }),
	}
}

// ReadJournal returns the statement that reads the journals of instances, in no order.
func (s *Store) ReadJournal(instances []string, found func(JournalRow)) sqldb.Stmt {
	return read(s.stmt("JournalRead", one(instances)), func(r JournalRow) {
		r.Began, r.Ended = r.Began.UTC(), r.Ended.UTC()
		r.Result, r.Sealed = s.openAny(journalResult, r.Result, r.Instance, r.Key)
		found(r)
	}, func(r *JournalRow) []any {
		return []any{&r.Instance, &r.Key, &r.Seq, &r.Kind, &r.Attempt, &r.Result, &r.Error, &r.Worker, &r.Began, &r.Ended}
	})
}

// DeleteJournal returns the statement that removes the journals of instances.
func (s *Store) DeleteJournal(instances []string) sqldb.Stmt {
	return s.stmt("JournalDelete", one(instances))
}

// ReopenJournal returns the statement that removes the failures from the journals of instances
// that are retried.
func (s *Store) ReopenJournal(instances []string) sqldb.Stmt {
	return s.stmt("JournalReopen", one(instances))
}

// ForgiveCrashes returns the statement that resets the crashes of instances that made progress.
func (s *Store) ForgiveCrashes(instances []string) sqldb.Stmt {
	return s.stmt("InstanceForgive", one(instances))
}
