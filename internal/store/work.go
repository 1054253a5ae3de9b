package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
)

// Family holds the statements on the items of one kind of work. All kinds share the tables of
// due work, running work and attempts: ready, leases, interrupts and attempts. Each kind has a
// table of its items. The names of its statements start with the name of the kind.
type Family struct {
	s    *Store
	kind string
	// lanes is true if a queue has several lanes, whose items in ready are claimed together.
	// Otherwise the queue is the only lane.
	lanes bool
	row   func(found func(Claimed)) func(sqldb.Scan) error
}

// Instances returns the statements on instances of state machines.
func (s *Store) Instances() *Family {
	return &Family{s: s, kind: "Instance", row: func(found func(Claimed)) func(sqldb.Scan) error {
		return s.instanceRow(true, func(i *Instance) {
			found(Claimed{ID: i.ID, Public: i.ID, Due: i.Due, Parent: i.Parent, Row: i})
		})
	}}
}

// Hooks returns the statements on hooks.
func (s *Store) Hooks() *Family {
	return &Family{s: s, kind: "Hook", lanes: true, row: func(found func(Claimed)) func(sqldb.Scan) error {
		return s.claimedHook(func(h *Hook) { found(Claimed{ID: h.Item, Public: h.ID, Due: h.Due, Row: h}) })
	}}
}

// Alarms returns the statements on users' alarms.
func (s *Store) Alarms() *Family {
	return &Family{s: s, kind: "Alarm", lanes: true, row: func(found func(Claimed)) func(sqldb.Scan) error {
		return s.claimedAlarm(func(a *Alarm) { found(Claimed{ID: a.Item, Public: a.String(), Due: a.Due, Row: a}) })
	}}
}

// Claimed is an item as a claim reads it.
type Claimed struct {
	// ID is the id of the item. Public is its public id.
	ID, Public string
	Due        time.Time
	// Parent is the item that waits for this item to finish, if there is one.
	Parent *string
	// Token is the token of the claim. Limit is the batch limit of a suspect. Both are set only
	// for kinds that store claims in their rows.
	Token string
	Limit *int
	// Row is the row of the kind's own table: *Instance, *Hook or *Alarm.
	Row any
}

// Claim describes a claim: the items to claim and the process.
type Claim struct {
	// Queue is the queue of the lease. Lanes are the lanes that are claimed, for kinds whose
	// queues have several lanes.
	Queue string
	Lanes []string
	// Worker is the process.
	Worker string
	// Token is new for every claim.
	Token string
	Lease time.Duration
	Limit int
}

// from returns the argument that selects the rows of ready for a statement.
func (f *Family) from(c Claim) any {
	if !f.lanes {
		return c.Queue
	}
	return one(c.Lanes)
}

// none reports whether there is no lane to claim from.
func (f *Family) none(c Claim) bool { return f.lanes && len(c.Lanes) == 0 }

func (f *Family) stmt(name string, args ...any) sqldb.Stmt { return f.s.stmt(f.kind+name, args...) }

// Claim returns the statements that lease due items, all under one token. They do not claim
// suspects: see ClaimSuspects.
func (f *Family) Claim(c Claim, now Now, found func(Claimed)) []sqldb.Stmt {
	if f.none(c) {
		return nil
	}
	args := []any{c.Queue, at(now), c.Limit, c.Token, c.Worker, f.s.dialect.Bool(false), c.Lease.Microseconds()}
	if f.lanes {
		args = append(args, one(c.Lanes))
	}
	stmts := f.s.stmts(f.kind+"Claim", args...)
	stmts[len(stmts)-1].Row = f.row(found)
	return stmts
}

// Suspect is an item that may have crashed its process, with its batch limit.
type Suspect struct {
	ID    string
	Limit int
}

// ListSuspects returns the statement that locks due suspects whose batch limit is at least
// least, in descending order of batch limit.
func (f *Family) ListSuspects(c Claim, least, limit int, now Now, found func(Suspect)) sqldb.Stmt {
	list := f.stmt("SuspectList", f.from(c), at(now), least, limit)
	list.Row = func(scan sqldb.Scan) error {
		var r Suspect
		if err := scan(&r.ID, &r.Limit); err != nil {
			return err
		}
		found(r)
		return nil
	}
	return list
}

// ClaimSuspects returns the statements that lease the suspects that ListSuspects has
// locked, all under one token.
func (f *Family) ClaimSuspects(c Claim, ids []string, now Now, found func(Claimed)) []sqldb.Stmt {
	separator := "\n), taken as ("
	if !f.s.dialect.ChainsWrites() {
		separator = "\n;\n"
	}
	_, rest, _ := strings.Cut(f.s.text(f.kind+"Claim"), separator)
	text := strings.ReplaceAll(f.s.text(f.kind+"SuspectClaim"), "{rest}", rest)
	args := []any{c.Queue, at(now), c.Limit, c.Token, c.Worker, f.s.dialect.Bool(true), c.Lease.Microseconds(), one(ids)}
	if f.lanes {
		args = append(args, one(c.Lanes))
	}
	stmts := f.s.bindAll(text, args)
	stmts[len(stmts)-1].Row = f.row(found)
	return stmts
}

// SuspectsDue returns the statement that calls found if suspects are due.
func (f *Family) SuspectsDue(c Claim, now Now, found func()) sqldb.Stmt {
	due := f.stmt("SuspectDue", f.from(c), at(now))
	due.Row = func(scan sqldb.Scan) error {
		var one int
		if err := scan(&one); err != nil {
			return err
		}
		found()
		return nil
	}
	return due
}

// Next returns the statement that reads the time until an item of the lanes is due, or a lease
// of the queue expires. Suspects count if their batch limit is at least least, and do not count
// if least is 0. found is not called if there is none.
func (f *Family) Next(queue string, lanes []string, least int, now Now, found func(time.Duration)) sqldb.Stmt {
	next := f.stmt("NextWake", at(now), queue, one(append([]string{}, lanes...)), least)
	next.Row = durationRow(found)
	return next
}

// Unready returns the statement that removes an item from its lane. removed is set to 1 if the
// item was there.
func (f *Family) Unready(id string, removed *int64) sqldb.Stmt {
	return counted(f.stmt("Unready", id), removed)
}

// LeasedItem is an item that a lease of a process still holds.
type LeasedItem struct {
	Token, ID string
	Crashes   int
	// Suspect is true if the lease holds only suspects. Limit is the batch limit.
	Suspect bool
	Limit   int
	// Public is the public id. Name is the name of the work.
	Public, Name string
}

// HeldBy returns the statement that finds the items that the leases of a process still hold.
func (f *Family) HeldBy(worker string, found func(LeasedItem)) sqldb.Stmt {
	held := f.stmt("Held", worker)
	held.Row = func(scan sqldb.Scan) error {
		var i LeasedItem
		if err := scan(&i.Token, &i.Suspect, &i.ID, &i.Crashes, &i.Limit, &i.Public, &i.Name); err != nil {
			return err
		}
		found(i)
		return nil
	}
	return held
}

// Take returns the statement that locks items. It skips items that other transactions have
// locked.
func (f *Family) Take(ids []string, found func(id string)) sqldb.Stmt {
	take := f.stmt("TakeMany", one(ids))
	take.Row = textRow(found)
	return take
}

// Lock returns the statement that locks items, in order.
func (f *Family) Lock(ids []string) sqldb.Stmt {
	lock := f.stmt("Lock", one(ids))
	lock.Row = textRow(func(string) {})
	return lock
}

// Return is an item whose process crashed. Limit is its batch limit, nil if it is not a
// suspect.
type Return struct {
	ID      string
	Crashes int
	Limit   *int
	Delay   time.Duration
}

// Return returns the statements that make the items of a crashed process ready again.
func (f *Family) Return(returns []Return, message string, now Now, woken func(lane string)) []sqldb.Stmt {
	return f.s.waking(f.kind+"Return", woken, message, at(now), tuples{
		column(returns, func(r Return) string { return r.ID }),
		column(returns, func(r Return) int { return r.Crashes }),
		column(returns, func(r Return) int64 { return r.Delay.Microseconds() }),
		column(returns, func(r Return) *int { return r.Limit }),
	})
}

// Ready returns the statement that puts items into their lanes, with their existing due times.
func (f *Family) Ready(ids []string) sqldb.Stmt { return f.stmt("Release", one(ids)) }

// Postpone returns the statement that postpones an item, with a reason. Ready then puts it back
// into its lane.
func (f *Family) Postpone(id, reason string, delay time.Duration, now Now) sqldb.Stmt {
	return f.stmt("Postpone", reason, at(now), delay.Microseconds(), id)
}

// FailedStep is a failed attempt.
type FailedStep struct {
	ID string
	// Step is the step of an instance, empty for other kinds.
	Step string
	// Number is the number of the attempt.
	Number int
	Error  string
	// Took is the running time. The start time is derived from it.
	Took time.Duration
}

// RecordFailed returns the statements that record failed attempts. Their leases must be locked.
func (f *Family) RecordFailed(worker string, all []FailedStep, now Now) []sqldb.Stmt {
	ids := column(all, func(a FailedStep) string { return a.ID })
	return []sqldb.Stmt{
		f.stmt("Attempt", worker, tuples{
			ids,
			column(all, func(a FailedStep) string { return a.Step }),
			column(all, func(a FailedStep) int { return a.Number }),
			column(all, func(a FailedStep) string { return a.Error }),
			column(all, func(a FailedStep) int64 { return a.Took.Microseconds() }),
		}, at(now)),
		f.stmt("AttemptCap", one(ids)),
	}
}

// RecordTaken returns the statements that record the attempts of items that are taken away from
// a lease, which must be locked.
func (f *Family) RecordTaken(token string, ids []string, outcome retry.Outcome, message string, now Now) []sqldb.Stmt {
	return []sqldb.Stmt{
		f.stmt("Lost", string(outcome), message, at(now), token, one(ids)),
		f.stmt("AttemptCap", one(ids)),
	}
}

// among returns the condition that a column is one of a set of ids.
func (s *Store) among(column string) string {
	return strings.NewReplacer("{of}", column, "{value}", "?").Replace(s.text("Among"))
}

// or returns the value of p, or otherwise if p is nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
