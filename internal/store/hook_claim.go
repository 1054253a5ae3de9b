package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Priorities are the levels of urgency, the most urgent first. There are few,
// so that a claim can look at each one's oldest due rows without walking over
// rows that are not due yet.
var Priorities = []int{-1, 0, 1}

// Claim says who claims hooks and which.
type Claim struct {
	Namespace string
	// Names are the hooks that the claimer has handlers for.
	Names  []string
	Worker string
	// Token is new for every claim; every statement that ends or extends the
	// claim is guarded by it.
	Token string
	Lease time.Duration
	Limit int
	// Least is the smallest batch limit of suspects that are claimed too.
	Least int
}

// LostHook is a hook whose claim has expired.
type LostHook struct {
	ID, Name, Worker, Token string
	Crashes                 int
	// Limit is the batch limit of a suspect, nil for others.
	Limit *int
	// Suspects and Others are the hooks that its process ran, this one included.
	Suspects, Others int
}

// HookVerdict is the consequence of a crash for a hook.
type HookVerdict struct {
	Crashes     int
	Limit       *int
	Delay       time.Duration
	Quarantined bool
}

// Expiry says what becomes of claims whose lease has expired.
type Expiry struct {
	Namespace string
	// Sort separates the claims of this process, which do not count as crashes, from
	// those of crashed processes. It leaves out the claims that must wait.
	Sort func([]LostHook) (mine, crashed []LostHook)
	// Judge decides about each hook whose process crashed.
	Judge   func(LostHook) HookVerdict
	Message string
	Limit   int
}

// Reaped is a hook whose claim had expired.
type Reaped struct {
	ID, Name string
	Status   HookStatus
	Crashes  int
}

// ReapHooks returns expired claims to the queue. Hooks whose process crashed count the
// crash, which is recorded as an attempt and may quarantine them.
func (s *Store) ReapHooks(ctx context.Context, run sqldb.Runner, e Expiry, now Now) ([]Reaped, error) {
	expired, err := s.expiredHooks(ctx, run, e, now)
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	mine, lost := e.Sort(expired)
	released := make([]sqldb.Stmt, len(mine))
	for i, l := range mine {
		released[i] = s.ReleaseHook(l.ID, l.Token, new(bool))
	}
	if err := run.Run(ctx, released...); err != nil || len(lost) == 0 {
		return nil, err
	}
	if err := run.Run(ctx, s.crowd(e.Namespace, lost)); err != nil {
		return nil, err
	}
	reaped := make([]Reaped, len(lost))
	stmts := make([]sqldb.Stmt, len(lost))
	for i, l := range lost {
		v := e.Judge(l)
		reaped[i] = Reaped{ID: l.ID, Name: l.Name, Status: "pending", Crashes: v.Crashes}
		if v.Quarantined {
			reaped[i].Status = "quarantined"
		}
		waits, us := v.Delay > 0 && !v.Quarantined, v.Delay.Microseconds()
		stmts[i] = s.stmt("HookReturn", string(reaped[i].Status), s.flag(v.Quarantined), at(now), v.Crashes, v.Limit, s.flag(waits), at(now), us, at(now), us, e.Message, l.ID)
	}
	err = run.Run(ctx, append(stmts, s.lostHooks(reaped, now)...)...)
	return reaped, err
}

func (s *Store) expiredHooks(ctx context.Context, run sqldb.Runner, e Expiry, now Now) ([]LostHook, error) {
	var lost []LostHook
	expired := s.stmt("HookExpired", e.Namespace, at(now), e.Limit)
	expired.Row = func(scan sqldb.Scan) error {
		var l LostHook
		err := scan(&l.ID, &l.Name, &l.Crashes, &l.Worker, &l.Token, &l.Limit)
		lost = append(lost, l)
		return err
	}
	err := run.Run(ctx, expired)
	return lost, err
}

// crowd returns the statement that counts what the processes of expired claims run:
// the process that let one of its claims expire has crashed.
func (s *Store) crowd(namespace string, lost []LostHook) sqldb.Stmt {
	crowd := s.stmt("HookCrowd", namespace)
	crowd.Row = func(scan sqldb.Scan) error {
		var worker *string
		var suspect, n int
		if err := scan(&worker, &suspect, &n); err != nil || worker == nil {
			return err
		}
		for i := range lost {
			switch l := &lost[i]; {
			case l.Worker != *worker:
			case suspect == 1:
				l.Suspects = n
			default:
				l.Others = n
			}
		}
		return nil
	}
	return crowd
}

// ClaimHooks leases up to c.Limit due hooks, the most urgent and then the
// oldest first. Each claim writes the row that it locked.
func (s *Store) ClaimHooks(ctx context.Context, run sqldb.Runner, c Claim, now Now) ([]Hook, error) {
	if len(c.Names) == 0 {
		return nil, nil
	}
	if s.dialect.Name == sqldb.MySQL {
		return s.claimLocked(ctx, run, c, now)
	}
	var hooks []Hook
	claim := s.stmt("HookClaim", c.Worker, c.Token, at(now), c.Lease.Microseconds(), c.Limit, c.Namespace, s.names(c.Names), c.Least)
	claim.Row = s.claimRow(&hooks)
	err := run.Run(ctx, claim)
	return hooks, err
}

// names are the names of hooks as an argument: an array, or on SQLite JSON.
func (s *Store) names(names []string) any {
	if s.dialect.Name == sqldb.Postgres {
		return names
	}
	encoded, _ := json.Marshal(names) // strings always can be
	return string(encoded)
}

func (s *Store) claimRow(hooks *[]Hook) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var h Hook
		err := scan(&h.ID, &h.Name, &h.Payload, &h.Priority, &h.Policy, &h.MaxAttempts, &h.Attempts, &h.Crashes, &h.Limit, &h.Unit, &h.Trace, &h.Created, &h.Due)
		h.Payload, h.Sealed = s.open(hookPayload, h.Payload, h.ID)
		*hooks = append(*hooks, h)
		return err
	}
}

// claimLocked does it in three steps, for MySQL: find, lock what nobody else
// has taken meanwhile, write.
func (s *Store) claimLocked(ctx context.Context, run sqldb.Runner, c Claim, now Now) ([]Hook, error) {
	ids, err := s.candidates(ctx, run, c, now)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var hooks []Hook
	lock := sqldb.Stmt{SQL: s.withIDs("HookLock", len(ids)), Args: ids, Row: s.claimRow(&hooks)}
	if err := run.Run(ctx, lock); err != nil || len(hooks) == 0 {
		return nil, err
	}
	args := []any{c.Worker, c.Token, at(now), at(now), c.Lease.Microseconds()}
	for _, h := range hooks {
		args = append(args, h.ID)
	}
	take := sqldb.Stmt{SQL: s.withIDs("HookTake", len(hooks)), Args: args}
	take.Done = func(rows int64) error {
		if rows != int64(len(hooks)) {
			return fmt.Errorf("claimed %d of %d locked hooks", rows, len(hooks))
		}
		return nil
	}
	err = run.Run(ctx, take)
	return hooks, err
}

func (s *Store) withIDs(name string, n int) string {
	return strings.ReplaceAll(s.text(name), "{ids}", placeholders(n))
}

func (s *Store) candidates(ctx context.Context, run sqldb.Runner, c Claim, now Now) ([]any, error) {
	var parts []string
	var args, ids []any
	for _, name := range c.Names {
		for _, priority := range Priorities {
			parts = append(parts, strings.ReplaceAll(s.text("HookCandidatesPart"), "{priority}", strconv.Itoa(priority)))
			args = append(args, c.Namespace, name, at(now), c.Least, c.Limit)
		}
	}
	find := sqldb.Stmt{
		SQL:  strings.ReplaceAll(s.text("HookCandidates"), "{due}", strings.Join(parts, "\nunion all\n")),
		Args: append(args, c.Limit),
		Row: func(scan sqldb.Scan) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		},
	}
	err := run.Run(ctx, find)
	return ids, err
}

// maxMicroseconds are the longest time that a time.Duration can hold.
const maxMicroseconds = math.MaxInt64 / int64(time.Microsecond)

// NextHook finds how long it is until a hook with one of the names is due, or
// a claim in the namespace expires. Suspects count if their batch limit is at least
// least. found is not called if there is none.
func (s *Store) NextHook(namespace string, names []string, least int, now Now, found func(time.Duration)) sqldb.Stmt {
	next := s.nextHook(namespace, names, least, now)
	next.Row = func(scan sqldb.Scan) error {
		var us *int64
		if err := scan(&us); err != nil || us == nil {
			return err
		}
		found(time.Duration(min(*us, maxMicroseconds)) * time.Microsecond)
		return nil
	}
	return next
}

func (s *Store) nextHook(namespace string, names []string, least int, now Now) sqldb.Stmt {
	if len(names) == 0 {
		names = []string{""} // no hook has this name
	}
	if s.dialect.Name != sqldb.MySQL {
		return s.stmt("HookNextWake", at(now), namespace, s.names(names), least)
	}
	var parts []string
	args := []any{at(now)}
	for _, name := range names {
		for _, priority := range Priorities {
			parts = append(parts, strings.ReplaceAll(s.text("HookNextWakePart"), "{priority}", strconv.Itoa(priority)))
			args = append(args, namespace, name, least)
		}
	}
	text := strings.ReplaceAll(s.text("HookNextWake"), "{due}", strings.Join(parts, "\nunion all\n"))
	return sqldb.Stmt{SQL: text, Args: append(args, namespace)}
}
