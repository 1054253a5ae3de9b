// Package joined finds out when transactions of callers end, so that work that was
// recorded in them starts as soon as after a commit of the engine itself.
//
// A joined transaction is committed by the caller, and the engine is not called at that
// time. A NOTIFY in the transaction would be exact, but it takes a lock that all commits
// of the server share. The Watcher asks the database instead, for all transactions with
// one query.
package joined

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// Database is a database that can report the end of other sessions' transactions.
type Database interface {
	// Mark returns the statement that a joined transaction runs last. It calls found with
	// a text that identifies the transaction, or not at all if nothing was written.
	Mark(found func(id string)) sqldb.Stmt
	// Ended returns the transactions that have ended. The value is false if a transaction
	// was certainly rolled back.
	Ended(ctx context.Context, ids []string) (map[string]bool, error)
}

const (
	// firstLook is the time between a join and the first query for it.
	firstLook = 5 * time.Millisecond
	// pace is the minimum time between two queries.
	pace = 10 * time.Millisecond
	// patience is the divisor of the age of a transaction that gives the time until the
	// next query for it: a transaction that is open for a second is asked for every 125 ms.
	patience = 8
	// maxPause bounds the time between two queries for a transaction.
	maxPause = 5 * time.Second
	// maxAge is the age at which a transaction is abandoned: its work is found by the next
	// poll.
	maxAge = 10 * time.Minute
	// maxPending bounds the transactions that are watched. The oldest of them are announced
	// without knowing their outcome when there are more.
	maxPending = 10_000
	// queryTimeout bounds one query.
	queryTimeout = 5 * time.Second
)

// Watcher watches joined transactions. The zero value is not usable; see New.
type Watcher struct {
	db    Database
	clock clock.Clock

	mu      sync.Mutex
	pending []*transaction // in order of age
	looking bool           // the goroutine runs
	woken   chan struct{}  // has a token if a transaction was added
	closed  bool
	stop    context.CancelFunc
	done    context.Context
	running sync.WaitGroup
}

// transaction is one joined transaction.
type transaction struct {
	id          string
	ended       func()
	since, next time.Time
}

// New returns a Watcher. It starts a goroutine only while transactions are watched.
func New(db Database) *Watcher {
	w := &Watcher{db: db, clock: clock.System, woken: make(chan struct{}, 1)}
	w.done, w.stop = context.WithCancel(context.Background())
	return w
}

// Mark returns the statement that a transaction runs last; see Database.
func (w *Watcher) Mark(found func(id string)) sqldb.Stmt { return w.db.Mark(found) }

// Watch calls committed once, from another goroutine, when the transaction has ended,
// unless it was certainly rolled back.
func (w *Watcher) Watch(id string, committed func()) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.pending = append(w.pending, &transaction{id: id, ended: committed, since: now, next: now.Add(firstLook)})
	select {
	case w.woken <- struct{}{}:
	default:
	}
	if !w.looking {
		w.looking = true
		w.running.Go(w.run)
	}
}

// Close stops watching. Transactions that have not ended are announced: most of them are
// about to be committed, and a wake-up is only a hint.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
	w.mu.Lock()
	rest := w.pending
	w.pending = nil
	w.mu.Unlock()
	announce(rest)
}

// run asks for the pending transactions until none is left.
func (w *Watcher) run() {
	var last time.Time
	for w.wait(last) {
		due := w.due()
		last = w.clock.Now()
		if len(due) > 0 {
			w.look(due)
		}
	}
}

// wait waits until the next transaction is due. It returns false if none is left.
func (w *Watcher) wait(last time.Time) bool {
	for {
		next, ok := w.nextDue()
		if !ok || w.done.Err() != nil {
			return false
		}
		if earliest := last.Add(pace); next.Before(earliest) {
			next = earliest
		}
		pause := next.Sub(w.clock.Now())
		if pause <= 0 {
			return true
		}
		timer := w.clock.NewTimer(pause)
		select {
		case <-timer.C():
			return true
		case <-w.woken: // a new transaction may be due before
			timer.Stop()
		case <-w.done.Done():
			timer.Stop()
			return false
		}
	}
}

// nextDue returns the earliest time at which a transaction is due. Without transactions
// the goroutine ends.
func (w *Watcher) nextDue() (next time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.pending {
		if next.IsZero() || t.next.Before(next) {
			next = t.next
		}
	}
	w.looking = len(w.pending) > 0
	return next, w.looking
}

// due returns the transactions to ask for, and sets the time of the next query for each.
func (w *Watcher) due() []*transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	var due []*transaction
	for _, t := range w.pending {
		if !t.next.After(now) {
			t.next = now.Add(min(now.Sub(t.since)/patience, maxPause))
			due = append(due, t)
		}
	}
	return due
}

// look asks for transactions, and announces those that were committed. If the database
// cannot tell, it is asked again later.
func (w *Watcher) look(due []*transaction) {
	ids := make([]string, len(due))
	for i, t := range due {
		ids[i] = t.id
	}
	ctx, cancel := context.WithTimeout(w.done, queryTimeout)
	defer cancel()
	ended, err := w.db.Ended(ctx, ids)
	if err != nil {
		ended = nil
	}
	announce(w.take(ended))
}

// take removes the transactions that have ended, and the ones that are too old or too
// many. It returns those that may have been committed.
func (w *Watcher) take(ended map[string]bool) []*transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, excess := w.clock.Now(), len(w.pending)-maxPending
	var taken, rest []*transaction
	for i, t := range w.pending {
		committed, over := ended[t.id]
		switch {
		case over && !committed:
		case over, i < excess, now.Sub(t.since) > maxAge:
			taken = append(taken, t)
		default:
			rest = append(rest, t)
		}
	}
	w.pending = rest
	return taken
}

func announce(transactions []*transaction) {
	for _, t := range transactions {
		t.ended()
	}
}
