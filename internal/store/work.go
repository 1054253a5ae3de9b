package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
)

// Family is the statements on the items of one kind of work. All kinds share the tables of
// what is due, what runs and what was tried: ready, leases, interrupts and attempts. Each
// has a table of its items. The names of its statements begin with the name of the kind.
type Family struct {
	s    *Store
	kind string
	// lanes is true if a queue has several lanes: items of ready that are claimed
	// together. Otherwise the queue is the only one.
	lanes bool
	row   func(found func(Claimed)) func(sqldb.Scan) error
}

// Instances returns the statements on instances of machines.
func (s *Store) Instances() *Family {
	return &Family{s: s, kind: "Instance", row: func(found func(Claimed)) func(sqldb.Scan) error {
		return s.instanceRow(func(i *Instance) {
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

// Alarms returns the statements on alarms of users.
func (s *Store) Alarms() *Family {
	return &Family{s: s, kind: "Alarm", lanes: true, row: func(found func(Claimed)) func(sqldb.Scan) error {
		return s.claimedAlarm(func(a *Alarm) { found(Claimed{ID: a.Item, Public: a.String(), Due: a.Due, Row: a}) })
	}}
}

// Claimed is an item as a claim reads it.
type Claimed struct {
	// ID is the id of the item, Public the id that users know it by.
	ID, Public string
	Due        time.Time
	// Parent is the item that waits for the end of this one, if one does.
	Parent *string
	// Token is that of the claim and Limit the batch limit of a suspect, of a kind whose
	// claims are in its rows.
	Token string
	Limit *int
	// Row is the row of the kind's own table: *Instance, *Hook or *Alarm.
	Row any
}

// Claim says what is claimed, and by which process.
type Claim struct {
	// Queue is the name of what the lease is for, Lanes the lanes that are claimed, for
	// kinds whose queues have several.
	Queue string
	Lanes []string
	// Worker is the process.
	Worker string
	// Token is new for every claim.
	Token string
	Lease time.Duration
	Limit int
}

// from returns the argument that says which rows of ready a statement is about.
func (f *Family) from(c Claim) any {
	if !f.lanes {
		return c.Queue
	}
	return one(c.Lanes)
}

// none reports whether there is nothing to claim from.
func (f *Family) none(c Claim) bool { return f.lanes && len(c.Lanes) == 0 }

func (f *Family) stmt(name string, args ...any) sqldb.Stmt { return f.s.stmt(f.kind+name, args...) }

// Claim returns the statements that lease due items, all under one token. Suspects are not
// among them: see ClaimSuspects.
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
// least, those with the largest limit first.
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

// SuspectsDue returns the statement that finds whether suspects are due.
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

// Next returns the statement that finds how long it is until an item of the lanes is due,
// or a lease of the queue expires. Suspects count if their batch limit is at least least,
// and not at all if it is 0. found is not called if there is none.
func (f *Family) Next(queue string, lanes []string, least int, now Now, found func(time.Duration)) sqldb.Stmt {
	next := f.stmt("NextWake", at(now), queue, one(append([]string{}, lanes...)), least)
	next.Row = durationRow(found)
	return next
}

// Unready returns the statement that takes an item out of its lane; removed learns whether
// it was there.
func (f *Family) Unready(id string, removed *int64) sqldb.Stmt {
	return counted(f.stmt("Unready", id), removed)
}

// LeasedItem is an item that a lease of a process still holds.
type LeasedItem struct {
	Token, ID string
	Crashes   int
	// Suspect is true if the lease holds suspects only; Limit is the batch limit.
	Suspect bool
	Limit   int
	// Public is the id that users know, Name the name of the work.
	Public, Name string
}

// HeldBy returns the statement that finds the items that all leases of a process still
// hold.
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

// Take returns the statement that locks items, except those that others have locked.
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

// Return is an item whose process crashed. Limit is its batch limit, nil if it is no
// suspect.
type Return struct {
	ID      string
	Crashes int
	Limit   *int
	Delay   time.Duration
}

// Return returns the statements that put items back whose process crashed.
func (f *Family) Return(returns []Return, message string, now Now, woken func(lane string)) []sqldb.Stmt {
	return f.s.waking(f.kind+"Return", woken, message, at(now), tuples{
		column(returns, func(r Return) string { return r.ID }),
		column(returns, func(r Return) int { return r.Crashes }),
		column(returns, func(r Return) int64 { return r.Delay.Microseconds() }),
		column(returns, func(r Return) *int { return r.Limit }),
	})
}

// Ready returns the statement that puts items into their lanes, at the due times that they
// have.
func (f *Family) Ready(ids []string) sqldb.Stmt { return f.stmt("Release", one(ids)) }

// Postpone returns the statement that makes an item due later, with a reason; Ready puts
// it back.
func (f *Family) Postpone(id, reason string, delay time.Duration, now Now) sqldb.Stmt {
	return f.stmt("Postpone", reason, at(now), delay.Microseconds(), id)
}

// FailedStep is an attempt that failed.
type FailedStep struct {
	ID string
	// Step is the step of an instance, empty for others.
	Step string
	// Number is which attempt it was.
	Number int
	Error  string
	// Took is how long it ran; it tells when it began.
	Took time.Duration
}

// RecordFailed returns the statements that record attempts that failed. Their leases must
// be locked.
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

// RecordTaken returns the statements that record the attempts of items that are taken away
// from a lease, which must be locked.
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

// or returns the value of p, or otherwise if there is none.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
