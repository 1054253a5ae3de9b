package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Timers filters timers of actors. Zero fields do not filter.
type Timers struct {
	// Actor is the actor of the timers. Type is the type of their events.
	Actor store.ActorRef
	Type  string
	// Statuses are scheduled and ready, and quarantined for the timers of a quarantined
	// actor.
	Statuses []perdure.Status
}

// TimerStatuses are all statuses of timers.
var TimerStatuses = []perdure.Status{perdure.StatusScheduled, perdure.StatusReady, perdure.StatusQuarantined}

func (f Timers) matches(p store.AlarmPlace) bool {
	return p.Machine && (f.Type == "" || f.Type == p.Type) && asked(f.Statuses, p.Status)
}

// timerWalk is one of the walks that together visit all timers that may match.
type timerWalk func(after store.AlarmPlace, limit int, found func(store.AlarmPlace)) sqldb.Stmt

func (i *Inspector) timerWalks(f Timers) []timerWalk {
	st := i.rt.Store
	if f.Actor != (store.ActorRef{}) {
		return []timerWalk{func(after store.AlarmPlace, limit int, found func(store.AlarmPlace)) sqldb.Stmt {
			return st.TimersOf(f.Actor, after, limit, found)
		}}
	}
	var all []timerWalk
	for _, w := range []struct {
		name string
		has  func(perdure.Status) bool
	}{{store.Everywhere, perdure.Status.Waits}, {store.Died, func(s perdure.Status) bool { return s == perdure.StatusQuarantined }}} {
		if len(f.Statuses) == 0 || slices.ContainsFunc(f.Statuses, w.has) {
			all = append(all, func(after store.AlarmPlace, limit int, found func(store.AlarmPlace)) sqldb.Stmt {
				return st.AlarmsIn(w.name, after, limit, found)
			})
		}
	}
	return all
}

// Timers returns a page of the timers of all actors, or of one, and the cursor of the next
// page. Waiting timers come first, by due time.
func (i *Inspector) Timers(ctx context.Context, f Timers, cursor string, limit int) ([]store.AlarmPlace, string, error) {
	at, err := decodeTimer(cursor)
	if err != nil {
		return nil, "", err
	}
	walks, rows := i.timerWalks(f), map[string]store.AlarmPlace{}
	ids, next, err := i.page(ctx, at, limit, func(ctx context.Context, at position, size int) (all []candidate, err error) {
		var now time.Time
		readTime := i.rt.Store.ReadTime(i.rt.Now(), func(t time.Time) { now = t })
		for n := at.Stage; n < len(walks) && len(all) < size; n++ {
			err := i.read(ctx, readTime, walks[n](timerPlace(at), size-len(all), func(p store.AlarmPlace) {
				p.Status = store.Refine(p.Status, 0, p.Due, now)
				c := candidate{id: fmt.Sprint(n, p.Actor, p.AlarmID), at: timerPosition(n, p), matches: f.matches(p)}
				all, rows[c.id] = append(all, c), p
			}))
			if err != nil {
				return nil, err
			}
			at = position{}
		}
		return all, nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list timers: %w", err)
	}
	found := make([]store.AlarmPlace, len(ids))
	for n, id := range ids {
		found[n] = rows[id]
	}
	return found, next, nil
}

// timerPosition returns the position at which a walk over alarms continues after p. Key has
// the actor, and Seq is 1 for a timer of an actor.
func timerPosition(stage int, p store.AlarmPlace) position {
	at := position{Stage: stage, Due: p.Due, Key: p.Actor.Type + "\n" + p.Actor.ID, ID: p.AlarmID}
	if p.Machine {
		at.Seq = 1
	}
	return at
}

func timerPlace(at position) store.AlarmPlace {
	actorType, id, _ := strings.Cut(at.Key, "\n")
	return store.AlarmPlace{Due: at.from(), Actor: store.ActorRef{Type: actorType, ID: id}, Machine: at.Seq == 1, AlarmID: at.ID}
}

func decodeTimer(cursor string) (at position, err error) {
	if err := decode(cursor, &at); err != nil {
		return at, err
	}
	if at.Stage < 0 || edge.Text("cursor", at.ID, 2*edge.MaxKey) != nil || edge.Text("cursor", at.Key, 2*edge.MaxKey) != nil {
		return at, fault.Invalidf("cursor", "is malformed")
	}
	return at, nil
}
