package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// The pages of delays have every one once, in the order of time, and no alarm of another
// kind, however the two are mixed.
func TestPagesHaveEveryDelayOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, db enginetest.Database) {
		at := func(n int) string {
			if db.Name == enginetest.Postgres {
				return fmt.Sprintf("to_timestamp(%d)", n)
			}
			return fmt.Sprintf("%d000000", n)
		}
		for n := range 30 {
			kind, status := "timer", "pending"
			if n%3 == 0 {
				kind = "alarm"
			}
			if n%5 == 0 {
				status = "quarantined"
			}
			due := at(1000 + n/4) // several at once
			actor, id, typ := fmt.Sprint(n%2), fmt.Sprintf("a%02d", n), fmt.Sprintf("t%d", n%2)
			if kind == "timer" {
				db.Exec(t, "insert into "+db.Table("perdure", "timers")+" (actor_type, actor_id, alarm_id, type, status, due_at, sequence, created_at)"+
					" values ('door', ?, ?, ?, ?, "+due+", 0, "+due+")", actor, id, typ, status)
				continue
			}
			item := fmt.Sprintf("00000000-0000-7000-8000-%012d", n)
			db.Exec(t, "insert into "+db.Table("perdure", "alarm_items")+" (id, actor_type, actor_id, alarm_id, type, queue, priority, due_at, occurs_at, sequence, generation, payload, policy, max_attempts, created_at)"+
				" values (?, 'door', ?, ?, ?, ?, 0, "+due+", "+due+", 0, 1, '{}', '{}', 1, "+due+")", item, actor, id, typ, store.AlarmLane(typ))
			if status == "pending" {
				db.Exec(t, "insert into "+db.Table("perdure", "ready")+" (queue, priority, due_at, id) values (?, 0, "+due+", ?)", store.AlarmLane(typ), item)
			} else {
				db.Exec(t, "update "+db.Table("perdure", "alarm_items")+" set dead = ? where id = ?", status, item)
			}
		}
		for name, c := range map[string]struct {
			filter inspect.Timers
			want   int
		}{
			"all":         {inspect.Timers{}, 20},
			"ready":       {inspect.Timers{Statuses: []perdure.Status{perdure.StatusReady}}, 16},
			"scheduled":   {inspect.Timers{Statuses: []perdure.Status{perdure.StatusScheduled}}, 0},
			"quarantined": {inspect.Timers{Statuses: []perdure.Status{perdure.StatusQuarantined}}, 4},
			"failed":      {inspect.Timers{Statuses: []perdure.Status{perdure.StatusFailed}}, 0},
			"type":        {inspect.Timers{Type: "t1"}, 10},
			"actor":       {inspect.Timers{Actor: store.ActorRef{Type: "door", ID: "0"}}, 10},
			"nobody":      {inspect.Timers{Actor: store.ActorRef{Type: "door", ID: "9"}}, 0},
		} {
			last, ordered := time.Time{}, len(c.filter.Statuses) == 1 || c.filter.Actor.ID != "" // else one status after the other
			got := walked(t, name, func(cursor string) (ids []string, next string, err error) {
				rows, next, err := i.Timers(t.Context(), c.filter, cursor, 3)
				for _, r := range rows {
					ids = append(ids, r.AlarmID)
					if ordered && r.Due.Before(last) {
						t.Errorf("%s: %s comes too late", name, r.AlarmID)
					}
					last = r.Due
				}
				return ids, next, err
			})
			if got != c.want {
				t.Errorf("%s: %d delays, want %d", name, got, c.want)
			}
		}
	})
}
