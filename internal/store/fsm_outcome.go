package store

import (
	"slices"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Held is the claim that an outcome belongs to.
type Held struct{ ID, Token string }

func heldColumns(held []Held) tuples {
	return tuples{
		column(held, func(h Held) string { return h.ID }),
		column(held, func(h Held) string { return h.Token }),
	}
}

// ShareLeases returns the statement that locks leases against the reaper and reads which of
// them still exist.
func (s *Store) ShareLeases(tokens []string, alive func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseShare", one(tokens)), alive)
}

// FindLeases is ShareLeases without the lock.
func (s *Store) FindLeases(tokens []string, alive func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseSee", one(tokens)), alive)
}

// Interrupted returns the statement that reads which claims of these leases were taken away
// although the lease is still valid.
func (s *Store) Interrupted(tokens []string, found func(Held)) sqldb.Stmt {
	return read(s.stmt("InterruptList", one(tokens)), found, func(h *Held) []any { return []any{&h.ID, &h.Token} })
}

// DropInterrupts returns the statement that removes interrupts whose claims have finished.
func (s *Store) DropInterrupts(held []Held) sqldb.Stmt {
	return s.stmt("InterruptDelete", heldColumns(held))
}

// LockInstances returns the statement that locks instances in the same order as the delivery of
// signals does.
func (s *Store) LockInstances(ids []string) sqldb.Stmt {
	return withRow(s.stmt("InstanceLock", one(ids)), textRow(func(string) {}))
}

// Step is the new state of an instance that continues.
type Step struct {
	ID, Step, State string
	Attempt         int
	Awaits          *string // JSON array of names
	Keeps           bool
	Seen            *string // JSON array of signals
	TimedOut        bool
	Fanout          int
	Dropped         *string // JSON
	Error           *string
	Delay           time.Duration
	Awaited         *string // JSON array of names; nil: unchanged
	Rerun           bool
	Failures        int
}

// plain reports whether the instance starts a step that waits for nothing. All but a few
// columns then get their defaults.
func (o Step) plain() bool {
	return o == Step{ID: o.ID, Step: o.Step, State: o.State, Fanout: o.Fanout, Delay: o.Delay}
}

// StepInstances returns the statement that writes new steps and states. If all of them are
// plain, which is the usual case, a shorter statement is used.
func (s *Store) StepInstances(steps []Step, now Now) sqldb.Stmt {
	if !slices.ContainsFunc(steps, func(o Step) bool { return !o.plain() }) {
		return s.stmt("InstanceStepPlain", tuples{
			column(steps, func(o Step) string { return o.ID }),
			column(steps, func(o Step) string { return o.Step }),
			column(steps, func(o Step) string { return s.seal(instanceState, o.State, o.ID) }),
			column(steps, func(o Step) int { return o.Fanout }),
			column(steps, func(o Step) int64 { return o.Delay.Microseconds() }),
		}, at(now))
	}
	return s.stmt("InstanceStep", tuples{
		column(steps, func(o Step) string { return o.ID }),
		column(steps, func(o Step) string { return o.Step }),
		column(steps, func(o Step) string { return s.seal(instanceState, o.State, o.ID) }),
		column(steps, func(o Step) int { return o.Attempt }),
		column(steps, func(o Step) *string { return o.Awaits }),
		column(steps, func(o Step) bool { return o.Keeps }),
		column(steps, func(o Step) *string { return o.Seen }),
		column(steps, func(o Step) bool { return o.TimedOut }),
		column(steps, func(o Step) int { return o.Fanout }),
		column(steps, func(o Step) *string { return o.Dropped }),
		column(steps, func(o Step) *string { return o.Error }),
		column(steps, func(o Step) int64 { return o.Delay.Microseconds() }),
		column(steps, func(o Step) int { return o.Failures }),
		column(steps, func(o Step) *string { return o.Awaited }),
		column(steps, func(o Step) bool { return o.Rerun }),
	}, at(now))
}

// ConsumeSignals returns the statement that removes signals that were handled.
func (s *Store) ConsumeSignals(seqs []int64) sqldb.Stmt { return s.stmt("SignalConsume", one(seqs)) }

// Park is an instance that waits for signals.
type Park struct {
	ID      string
	Names   string  // JSON array
	Seen    *string // JSON array of signals that do not wake it
	Timeout *time.Duration
}

// ParkInstances returns the statements that make instances wait, or run immediately if a signal
// is already there. The instances must be locked; StepInstances locks them.
func (s *Store) ParkInstances(parks []Park, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("AwaitPark", woken, tuples{
		column(parks, func(p Park) string { return p.ID }),
		column(parks, func(p Park) string { return p.Names }),
		column(parks, func(p Park) *string { return p.Seen }),
		column(parks, func(p Park) *int64 { return micros(p.Timeout) }),
	}, at(now))
}

// Barrier is the wait of a parent for its children, until only Until children are left.
type Barrier struct {
	Parent  string
	Fanout  int
	Pending int
	Until   int
	Timeout *time.Duration
	// CancelRest cancels the remaining children when the wait ends.
	CancelRest bool
}

// RaiseBarriers returns the statement that makes parents wait for children.
func (s *Store) RaiseBarriers(barriers []Barrier, now Now) sqldb.Stmt {
	return s.stmt("BarrierInsert", at(now), tuples{
		column(barriers, func(b Barrier) string { return b.Parent }),
		column(barriers, func(b Barrier) int { return b.Fanout }),
		column(barriers, func(b Barrier) int { return b.Pending }),
		column(barriers, func(b Barrier) int { return b.Until }),
		column(barriers, func(b Barrier) *int64 { return micros(b.Timeout) }),
		column(barriers, func(b Barrier) bool { return b.CancelRest }),
	})
}

// Arrival is a number of finished children of one fan-out.
type Arrival struct {
	Parent string
	Fanout int
	N      int
}

// CountArrivals returns the statements that count finished children at the barriers of their
// parents, and release the parents that have enough.
func (s *Store) CountArrivals(arrivals []Arrival, now Now, woken func(queue string)) []sqldb.Stmt {
	parents := one(column(arrivals, func(a Arrival) string { return a.Parent }))
	lock := s.stmt("BarrierLock", parents)
	lock.Row = textRow(func(string) {})
	count := s.stmt("BarrierCount", tuples{
		column(arrivals, func(a Arrival) string { return a.Parent }),
		column(arrivals, func(a Arrival) int { return a.Fanout }),
		column(arrivals, func(a Arrival) int { return a.N }),
	})
	return append([]sqldb.Stmt{lock, count}, s.waking("BarrierOpen", woken, parents, at(now))...)
}

// DropBarriers returns the statement that removes the barriers of parents.
func (s *Store) DropBarriers(parents []string) sqldb.Stmt {
	return s.stmt("BarrierDelete", one(parents))
}

// Finish is the final status of an instance.
type Finish struct {
	ID, Status string
	Result     *string // JSON
	Error      *string
	// State is the state after the last step, if the step changed it.
	State *string
	// EndedBy is the parent that finished and thereby finished this instance, if there is one.
	EndedBy *string
}

// FinishInstances returns the statement that finishes instances. Their inboxes are kept until
// the instances are removed.
func (s *Store) FinishInstances(ends []Finish, now Now) sqldb.Stmt {
	return s.stmt("FinishMany", at(now), tuples{
		column(ends, func(f Finish) string { return f.ID }),
		column(ends, func(f Finish) string { return f.Status }),
		column(ends, func(f Finish) *string { return s.sealAny(finishedResult, f.Result, f.ID) }),
		column(ends, func(f Finish) *string { return f.Error }),
		column(ends, func(f Finish) *string { return s.sealAny(instanceState, f.State, f.ID) }),
		column(ends, func(f Finish) *string { return f.EndedBy }),
	})
}

// Occupied is a unique key and its owner.
type Occupied struct {
	UniqueKey
	ID string
}

// LeaveUniques returns the statement that frees unique keys.
func (s *Store) LeaveUniques(keys []Occupied) sqldb.Stmt {
	return s.stmt("UniqueLeave", tuples{
		column(keys, func(k Occupied) string { return k.Name }),
		column(keys, func(k Occupied) string { return k.Key }),
		column(keys, func(k Occupied) string { return k.ID }),
	})
}

// Deadline is the time by which an instance must finish.
type Deadline struct {
	At time.Time
	ID string
}

// DropDeadlines returns the statement that removes the deadlines of finished instances.
func (s *Store) DropDeadlines(deadlines []Deadline) sqldb.Stmt {
	return s.stmt("DeadlineDelete", tuples{
		column(deadlines, func(d Deadline) time.Time { return d.At }),
		column(deadlines, func(d Deadline) string { return d.ID }),
	})
}

// PromotePartitions returns the statements that make the next instance of each partition key
// ready after the head has finished.
func (s *Store) PromotePartitions(keys []string, now Now, woken func(queue string)) []sqldb.Stmt {
	lock := s.stmt("PartitionLock", one(keys))
	lock.Row = textRow(func(string) {})
	return append([]sqldb.Stmt{lock}, s.waking("PartitionPromote", woken, one(keys), one(keys), at(now))...)
}

// DropLeases returns the statement that removes leases that hold no instance.
func (s *Store) DropLeases(tokens []string) sqldb.Stmt { return s.stmt("LeaseDelete", one(tokens)) }

func textRow(found func(string)) func(sqldb.Scan) error {
	return readRow(found, func(text *string) []any { return []any{text} })
}

// CountDropped returns the statements that remove children from barriers if their unique key
// was already in use, and release parents that have no children to wait for.
func (s *Store) CountDropped(children []NewInstance, parents []string, now Now, woken func(queue string)) []sqldb.Stmt {
	var unique []NewInstance
	for _, c := range children {
		if c.UniqueKey != nil {
			unique = append(unique, c)
		}
	}
	var stmts []sqldb.Stmt
	if len(unique) > 0 {
		stmts = s.stmts("ChildrenDropped", tuples{
			column(unique, func(n NewInstance) string { return *n.Parent }),
			column(unique, func(n NewInstance) string { return n.ID }),
			column(unique, func(n NewInstance) int { return *n.Ordinal }),
			column(unique, func(n NewInstance) string { return *n.UniqueName }),
			column(unique, func(n NewInstance) string { return *n.UniqueKey }),
		})
	}
	return append(stmts, s.waking("BarrierOpen", woken, one(parents), at(now))...)
}

// ChildRow is a child instance as its parent reads it.
type ChildRow struct {
	ID, FSM string
	Ordinal int
	Status  *string // nil: not finished
	Result  *string
	Error   *string
	State   string
	// Sealed is the error if the result or the state could not be decrypted. They then have
	// their stored form.
	Sealed error
}

// ListChildren returns the statement that reads the children of a fan-out in
// order.
func (s *Store) ListChildren(parent string, fanout int, found func(ChildRow)) sqldb.Stmt {
	return read(s.stmt("ChildList", parent, fanout), func(c ChildRow) {
		c.Result, c.Sealed = s.openAny(finishedResult, c.Result, c.ID)
		var err error
		if c.State, err = s.open(instanceState, c.State, c.ID); err != nil {
			c.Sealed = err
		}
		found(c)
	}, func(c *ChildRow) []any {
		return []any{&c.ID, &c.FSM, &c.Ordinal, &c.Status, &c.Result, &c.Error, &c.State}
	})
}
