package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// AlarmClaim says who claims alarms, and of which types.
type AlarmClaim struct {
	Types         []string
	Worker, Token string
	Lease         time.Duration
	Limit         int
	// Least is the smallest batch limit of suspects that are claimed too.
	Least int
}

// ClaimAlarms returns the statement that leases due alarms, the most urgent and
// then the oldest first.
func (s *Store) ClaimAlarms(c AlarmClaim, now Now, claimed func(Alarm)) sqldb.Stmt {
	claim := s.stmt("AlarmClaim", c.Worker, c.Token, at(now), c.Lease.Microseconds(), c.Limit, s.names(c.Types), c.Least)
	claim.Row = s.alarmRow(claimed)
	return claim
}

// SortAlarms orders alarms as they are claimed.
func SortAlarms(alarms []Alarm) {
	slices.SortFunc(alarms, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), cmp.Compare(a.Sequence, b.Sequence))
	})
}

// NextAlarm returns the statement that finds how long it is until an alarm of one
// of the types is due, or a claim expires. Suspects count if their batch limit is at
// least least. found is not called if there is none.
func (s *Store) NextAlarm(types []string, least int, now Now, found func(time.Duration)) sqldb.Stmt {
	if types == nil {
		types = []string{} // null is no array
	}
	next := s.stmt("AlarmNextWake", at(now), s.names(types), least)
	next.Row = durationRow(found)
	return next
}

// AlarmHold is a claim of an alarm: what guards the statements that end it.
type AlarmHold struct {
	AlarmKey
	Token      string
	Generation int64
}

func (h AlarmHold) args() []any { return h.AlarmKey.args(h.Token, h.Generation) }

// ExtendAlarm returns the statement that renews the lease of a claim.
func (s *Store) ExtendAlarm(h AlarmHold, lease time.Duration, now Now, stale *bool) sqldb.Stmt {
	args := append([]any{at(now), lease.Microseconds()}, h.AlarmKey.args(h.Token)...)
	return outcome(s.stmt("AlarmExtend", args...), stale)
}

// ReleaseAlarm returns the statement that gives a claim back at no cost.
func (s *Store) ReleaseAlarm(h AlarmHold) sqldb.Stmt {
	return s.stmt("AlarmRelease", h.AlarmKey.args(h.Token)...)
}

// PostponeAlarm returns the statement that gives a claim back for a while, at no
// cost, unless the alarm was scheduled anew. A message that is not nil becomes the
// alarm's error.
func (s *Store) PostponeAlarm(h AlarmHold, message *string, delay time.Duration, now Now) sqldb.Stmt {
	return s.stmt("AlarmPostpone", append([]any{message, at(now), delay.Microseconds()}, h.args()...)...)
}

// YieldAlarm returns the statement that ends a claim of an alarm that was
// scheduled anew while it ran. It follows the outcome, which has changed nothing then;
// yielded learns that the claim was held all the same.
func (s *Store) YieldAlarm(h AlarmHold, yielded *bool) sqldb.Stmt {
	yield := s.stmt("AlarmYield", h.AlarmKey.args(h.Token)...)
	yield.Done = func(rows int64) error {
		*yielded = rows > 0
		return nil
	}
	return yield
}

// FinishAlarm returns the statement that ends a claim and the alarm.
func (s *Store) FinishAlarm(h AlarmHold, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("AlarmDone", h.args()...), stale)
}

// AdvanceAlarm returns the statement that ends a claim and makes the alarm wait
// for its next tick. message is that of the tick that is given up, if it is.
func (s *Store) AdvanceAlarm(h AlarmHold, next time.Time, caughtUp int, message *string, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("AlarmAdvance", append([]any{next, next, caughtUp, message, message}, h.args()...)...), stale)
}

// RetryAlarm returns the statements that end a claim with a failure after which
// the alarm is due again in a while, and record the attempt.
func (s *Store) RetryAlarm(h AlarmHold, message string, delay time.Duration, now Now, stale *bool) []sqldb.Stmt {
	return s.recorded(TriedAlarm(h.AlarmKey), s.alarmAttempt(h, message, now),
		outcome(s.stmt("AlarmRetry", append([]any{message, at(now), delay.Microseconds()}, h.args()...)...), stale))
}

// FailAlarm returns the statements that end a claim with the last failure, and
// record the attempt.
func (s *Store) FailAlarm(h AlarmHold, message string, now Now, stale *bool) []sqldb.Stmt {
	return s.recorded(TriedAlarm(h.AlarmKey), s.alarmAttempt(h, message, now),
		outcome(s.stmt("AlarmFail", append([]any{message}, h.args()...)...), stale))
}

func (s *Store) alarmAttempt(h AlarmHold, message string, now Now) sqldb.Stmt {
	return s.stmt("AlarmAttempt", append([]any{message, at(now)}, h.args()...)...)
}

// BuryAlarm returns the statements that keep a tick of a recurring alarm as a dead
// letter of its own, with its attempts, if the claim is held. attempts is how many
// there were of the tick, with the one that is recorded now.
func (s *Store) BuryAlarm(h AlarmHold, id, payload, message string, attempts int, now Now) []sqldb.Stmt {
	key := h.AlarmKey
	key.ID = id
	return []sqldb.Stmt{
		s.stmt("AlarmBury", append([]any{id, s.sealAlarm(payload, key), message}, h.args()...)...),
		s.alarmAttempt(h, message, now),
		s.stmt("AlarmAttemptCopy", append(append([]any{id}, h.args()...), attempts)...),
		s.capAttempts(TriedAlarm(h.AlarmKey)),
	}
}

// Notice is a notification to be sent.
type Notice struct {
	ID, Type, Payload, Policy string
	MaxAttempts               int
	Sequence                  int64
	URL                       string
}

// RecordNotice returns the statement that records a notification, if the claim
// is held and, unless anew is true, the alarm was not scheduled anew meanwhile.
func (s *Store) RecordNotice(n Notice, h AlarmHold, anew bool, now Now) sqldb.Stmt {
	args := []any{n.ID, n.Type, at(now), at(now), n.Sequence, s.sealAlarm(n.Payload, AlarmKey{ID: n.ID}), n.Policy, n.MaxAttempts, n.URL, at(now)}
	var generation *int64
	if !anew {
		generation = &h.Generation
	}
	return s.stmt("AlarmNotice", append(args, h.AlarmKey.args(h.Token, generation)...)...)
}
