package actor_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A row that Go cannot hold, or whose texts mean nothing, stops neither the delays
// of other actors nor a list.
func (Conformance) NoActorStopsOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &actor.Options{OnError: func(error) {}})
	f.register(t, "w", waiter, nil)
	n := 0
	spawn := func() actor.Ref {
		n++
		ref := actor.Ref{Type: "w", ID: fmt.Sprint(n)}
		f.spawn(t, ref)
		return ref
	}
	plant := func(table, set string) {
		id := "actor_id"
		if table == "actors" {
			id = "id"
		}
		db.Exec(t, "update "+db.Table("perdure", table)+" set "+set+" where "+id+" = ?", spawn().ID)
	}
	plantTime := func(table, column, to string) actor.Ref {
		ref, id := spawn(), "actor_id"
		if table == "actors" {
			id = "id"
		}
		db.SetTime(t, "perdure", table, column, to, id+" = ?", ref.ID)
		return ref
	}
	early := plantTime("timers", "due_at", enginetest.Beginningless)
	never := plantTime("timers", "due_at", enginetest.Endless)
	for _, c := range []string{"timers.occurs_at", "timers.created_at", "actors.created_at", "actors.updated_at"} {
		table, column := c[:6], c[7:]
		plantTime(table, column, enginetest.Beginningless)
		plantTime(table, column, enginetest.Endless)
	}
	for _, set := range []string{"payload = null", "payload = '1'", "payload = '{}'", `payload = '{"Event": 1}'`, "path = null", "generation = null", "path = 'nowhere'"} {
		plant("timers", set)
	}
	plant("actors", "snapshot = '1'")
	plant("actors", "snapshot = '{}'")
	plant("actors", "checksum = ''")
	plant("actors", "value = '1'")
	plant("actors", "input = '[]'")
	plant("actors", "machine = 7")
	fine := spawn()

	f.reopen(t, &actor.Options{OnError: func(error) {}}) // nothing is cached
	f.register(t, "w", waiter, nil)
	f.pass(t, 1000)
	for _, ref := range []actor.Ref{early, fine} {
		equal(t, "state of "+ref.ID, fmt.Sprint(f.value(t, ref)), "fired")
	}
	equal(t, "state of one that is never due", fmt.Sprint(f.value(t, never)), "a")
	page, _, err := f.actors.List(enginetest.Context(t), actor.Filter{}, "", 100)
	enginetest.NoError(t, err)
	equal(t, "actors", len(page), n)
	_, err = json.Marshal(page)
	enginetest.NoError(t, err)
	_, err = f.actors.Upcoming(enginetest.Context(t), "w", f.clock.Now().AddDate(100, 0, 0), 100)
	enginetest.NoError(t, err)
}
