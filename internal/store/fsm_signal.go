package store

import (
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Signal is a signal in the inbox of an instance.
type Signal struct {
	Seq     int64
	Target  string
	Name    string
	Payload string
	Created time.Time
	// Received is true if an earlier run of a step received the signal.
	Received bool
	// Sealed is the error if the payload could not be decrypted. The payload then has its
	// stored form.
	Sealed error
}

// NewSignal is a signal to be delivered.
type NewSignal struct {
	Target, Name, Payload string
	Dedup                 *string
	// Room is the maximum number of signals in the inbox.
	Room int
}

// DeliverSignal returns the statements that deliver a signal. ended is called with the status
// of a finished target and returns the error for it. full returns the error for an inbox
// without room. duplicate is set to whether the signal's key was seen before. woken is called
// with the queue of a target that waited for the signal.
func (s *Store) DeliverSignal(n NewSignal, now Now, ended func(status string) error, full func() error, duplicate *bool, woken func(queue string)) []sqldb.Stmt {
	target := s.stmts("SignalTarget", n.Target)
	target[0].Row = textRow(func(string) {})
	target[0].Done = sqldb.One(&fault.NotFound{Kind: "instance", ID: n.Target})
	status := s.stmt("FinishedStatus", n.Target)
	status.Row = func(scan sqldb.Scan) error {
		var status string
		if err := scan(&status); err != nil {
			return err
		}
		return ended(status)
	}
	insert := s.stmts("SignalInsert", n.Target, n.Name, s.seal(signalPayload, n.Payload, n.Target, n.Name), n.Dedup, at(now))
	insert[len(insert)-1].Done = func(rows int64) error {
		*duplicate = rows == 0
		return nil
	}
	room := s.stmt("SignalBeyond", n.Target, n.Room)
	room.Row = func(sqldb.Scan) error { return full() }
	stmts := append(append(append(target, status), insert...), room)
	return append(stmts, s.waking("SignalWake", woken, n.Target, n.Name, at(now))...)
}

// Inbox returns the statement that reads the signals of instances, in order of
// arrival.
func (s *Store) Inbox(targets []string, found func(Signal)) sqldb.Stmt {
	return read(s.stmt("SignalInbox", one(targets)), func(g Signal) {
		g.Created = g.Created.UTC()
		g.Payload, g.Sealed = s.open(signalPayload, g.Payload, g.Target, g.Name)
		found(g)
	}, func(g *Signal) []any { return []any{&g.Seq, &g.Target, &g.Name, &g.Payload, &g.Created, &g.Received} })
}

// Ending is an instance that is about to finish, and the signals that its last step received.
type Ending struct {
	ID    string
	Names string // JSON array: all names that it has ever awaited
	Given string // JSON array of signals
}

// LateSignals returns the statements that lock instances and find signals in their inboxes that
// the instance has awaited at some time and that no step received.
func (s *Store) LateSignals(ends []Ending, found func(id, name string)) []sqldb.Stmt {
	ids := column(ends, func(e Ending) string { return e.ID })
	late := twoColumns(s.stmt("SignalLate", tuples{
		ids,
		column(ends, func(e Ending) string { return e.Names }),
		column(ends, func(e Ending) string { return e.Given }),
	}), found)
	return []sqldb.Stmt{s.LockInstances(ids), late}
}

// ReceiveSignals returns the statement that marks signals that a step received and that stay in
// the inbox.
func (s *Store) ReceiveSignals(seqs []int64) sqldb.Stmt { return s.stmt("SignalReceive", one(seqs)) }
