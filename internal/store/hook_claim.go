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
}

// Expiry says what becomes of claims whose lease has expired.
type Expiry struct {
	Namespace string
	// MaxCrashes is how many expired claims quarantine a hook.
	MaxCrashes int
	// Delay is how long a hook waits, times its earlier crashes.
	Delay   time.Duration
	Message string
	Limit   int
}

// Reaped is a hook whose claim had expired.
type Reaped struct {
	ID, Name string
	Status   HookStatus
	Crashes  int
}

// ReapHooks returns expired claims to the queue, or quarantines them, and records
// their attempts.
func (s *Store) ReapHooks(ctx context.Context, run sqldb.Runner, e Expiry, now Now) ([]Reaped, error) {
	reap := s.reap
	if s.dialect.Name == sqldb.MySQL {
		reap = s.reapLocked
	}
	reaped, err := reap(ctx, run, e, now)
	if err != nil || len(reaped) == 0 {
		return nil, err
	}
	return reaped, run.Run(ctx, s.lostHooks(reaped, now)...)
}

func (s *Store) reap(ctx context.Context, run sqldb.Runner, e Expiry, now Now) ([]Reaped, error) {
	var reaped []Reaped
	reap := s.stmt("HookReap", e.Namespace, at(now), e.Delay.Microseconds(), e.Message, e.MaxCrashes, e.Limit)
	reap.Row = func(scan sqldb.Scan) error {
		var r Reaped
		err := scan(&r.ID, &r.Name, &r.Status, &r.Crashes)
		reaped = append(reaped, r)
		return err
	}
	return reaped, run.Run(ctx, reap)
}

// reapLocked does it in two steps, for MySQL, which returns nothing from an
// update.
func (s *Store) reapLocked(ctx context.Context, run sqldb.Runner, e Expiry, now Now) ([]Reaped, error) {
	var reaped []Reaped
	expired := s.stmt("HookExpired", e.Namespace, at(now), e.Limit)
	expired.Row = func(scan sqldb.Scan) error {
		var r Reaped
		err := scan(&r.ID, &r.Name, &r.Crashes)
		reaped = append(reaped, r)
		return err
	}
	if err := run.Run(ctx, expired); err != nil {
		return nil, err
	}
	for i := range reaped {
		r := &reaped[i]
		delay := time.Duration(r.Crashes) * e.Delay
		r.Crashes++
		quarantine := r.Crashes >= e.MaxCrashes
		r.Status = "pending"
		if quarantine {
			r.Status = "quarantined"
		}
		waits, us := delay > 0 && !quarantine, delay.Microseconds()
		stmt := s.stmt("HookReturn", string(r.Status), quarantine, at(now), waits, at(now), us, at(now), us, e.Message, r.ID)
		if err := run.Run(ctx, stmt); err != nil {
			return nil, err
		}
	}
	return reaped, nil
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
	claim := s.stmt("HookClaim", c.Worker, c.Token, at(now), c.Lease.Microseconds(), c.Limit, c.Namespace, s.names(c.Names))
	claim.Row = s.claimRow(&hooks)
	return hooks, run.Run(ctx, claim)
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
		err := scan(&h.ID, &h.Name, &h.Payload, &h.Priority, &h.Policy, &h.MaxAttempts, &h.Attempts, &h.Crashes, &h.Unit, &h.Trace, &h.Created, &h.Due)
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
	return hooks, run.Run(ctx, take)
}

func (s *Store) withIDs(name string, n int) string {
	return strings.ReplaceAll(s.texts[name], "{ids}", placeholders(n))
}

func (s *Store) candidates(ctx context.Context, run sqldb.Runner, c Claim, now Now) ([]any, error) {
	var parts []string
	var args, ids []any
	for _, name := range c.Names {
		for _, priority := range Priorities {
			parts = append(parts, strings.ReplaceAll(s.texts["HookCandidatesPart"], "{priority}", strconv.Itoa(priority)))
			args = append(args, c.Namespace, name, at(now), c.Limit)
		}
	}
	find := sqldb.Stmt{
		SQL:  strings.ReplaceAll(s.texts["HookCandidates"], "{due}", strings.Join(parts, "\nunion all\n")),
		Args: append(args, c.Limit),
		Row: func(scan sqldb.Scan) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		},
	}
	return ids, run.Run(ctx, find)
}

// maxMicroseconds are the longest time that a time.Duration can hold.
const maxMicroseconds = math.MaxInt64 / int64(time.Microsecond)

// NextHook finds how long it is until a hook with one of the names is due, or
// a claim in the namespace expires. found is not called if there is none.
func (s *Store) NextHook(namespace string, names []string, now Now, found func(time.Duration)) sqldb.Stmt {
	next := s.nextHook(namespace, names, now)
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

func (s *Store) nextHook(namespace string, names []string, now Now) sqldb.Stmt {
	if len(names) == 0 {
		names = []string{""} // no hook has this name
	}
	if s.dialect.Name != sqldb.MySQL {
		return s.stmt("HookNextWake", at(now), namespace, s.names(names))
	}
	var parts []string
	args := []any{at(now)}
	for _, name := range names {
		for _, priority := range Priorities {
			parts = append(parts, strings.ReplaceAll(s.texts["HookNextWakePart"], "{priority}", strconv.Itoa(priority)))
			args = append(args, namespace, name)
		}
	}
	text := strings.ReplaceAll(s.texts["HookNextWake"], "{due}", strings.Join(parts, "\nunion all\n"))
	return sqldb.Stmt{SQL: text, Args: append(args, namespace)}
}
