package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// maxVerified is the maximum number of actors that Verify replays.
const maxVerified = 10_000

// Verify replays the active actors whose statecharts this process has. It reports each actor
// whose log does not lead to its snapshot, and each actor whose stored timers are not those of
// its log. It also reports stored statecharts that were changed. It returns the number of actors
// that it has replayed, at most 10,000. Nothing is changed.
func (a *Actors) Verify(ctx context.Context, found func(id, problem string)) (int, error) {
	if err := a.verifyStatecharts(ctx, found); err != nil {
		return 0, fmt.Errorf("verify actors: %w", err)
	}
	n := 0
	for after, more := (store.ActorRef{}), true; more && n < maxVerified; {
		var page []Ref
		const size = 200
		rows := 0
		err := a.read(ctx, a.rt.Store.ActorSums(after, size, func(s store.Sum) {
			rows, after = rows+1, s.ActorRef
			if s.Status == string(Active) {
				page = append(page, refOf(s.ActorRef))
			}
		}))
		if err != nil {
			return n, fmt.Errorf("verify actors: %w", err)
		}
		more = rows == size
		for _, ref := range page {
			replayed, err := a.verify(ctx, ref, found)
			if err != nil {
				return n, fmt.Errorf("verify actor %s: %w", ref, err)
			}
			if replayed {
				n++
			}
		}
	}
	return n, nil
}

// verify replays one actor. It returns false if this process cannot run it.
func (a *Actors) verify(ctx context.Context, ref Ref, found func(id, problem string)) (bool, error) {
	before, h, err := a.historyOf(ctx, ref, 0)
	var missing *fault.NotFound
	var version *VersionError
	switch {
	case errors.As(err, &missing), errors.As(err, &version), before != nil && before.Sealed != nil:
		return false, nil
	case errors.Is(err, errBroken):
		found(ref.String(), err.Error())
		return true, nil
	case err != nil && (sqldb.IsTransient(err) || ctx.Err() != nil):
		return false, err
	case err != nil:
		found(ref.String(), "the log cannot be replayed: "+err.Error())
		return true, nil
	}
	var stored []statechart.Timer
	var problems []string
	list := a.rt.Store.ListTimers([]store.ActorRef{ref.stored()}, func(s store.ActorTimer) {
		timer := pendingTimer(s)
		if s.Sealed == nil && alarmID(timer) != s.AlarmID {
			problems = append(problems, fmt.Sprintf("timer %s cannot be decoded", s.AlarmID))
			return
		}
		stored = append(stored, timer)
	})
	if err := a.read(ctx, list); err != nil {
		return false, err
	}
	if after, err := a.record(ctx, ref); err != nil || after.Sequence != h.sequence {
		return true, nil // a transition since the replay: its timers are not those of this log
	}
	for _, p := range append(problems, h.differences(stored)...) {
		found(ref.String(), p)
	}
	if len(problems) == 0 && h.checksum != value(before.Checksum) {
		found(ref.String(), "the log leads to another state than the snapshot")
	}
	return true, nil
}

// differences compares the pending timers of a history with stored ones.
func (h *history) differences(stored []statechart.Timer) []string {
	has := func(all []statechart.Timer, t statechart.Timer) bool {
		return slices.ContainsFunc(all, func(o statechart.Timer) bool { return o.Key() == t.Key() })
	}
	var all []string
	for _, t := range h.timers {
		if !has(stored, t) {
			all = append(all, fmt.Sprintf("timer %s is missing, due %s", alarmID(t), timeOf(t.Due).Format("2006-01-02 15:04:05 UTC")))
		}
	}
	for _, t := range stored {
		if !has(h.timers, t) {
			all = append(all, fmt.Sprintf("timer %s is not one of its state", alarmID(t)))
		}
	}
	return all
}

// verifyStatecharts compares the stored statecharts with their checksums.
func (a *Actors) verifyStatecharts(ctx context.Context, found func(id, problem string)) error {
	return a.read(ctx, a.rt.Store.MachineSums(func(m store.Machine, stored string) {
		d := documentOf(m)
		d.Version = 0
		if sum := checksum([]byte(*text(d))); sum != stored {
			found(m.Name, fmt.Sprintf("version %d of the statechart does not match its checksum", m.Version))
		}
	}))
}
