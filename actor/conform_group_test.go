package actor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A job that shares its transaction with the spawn of its actor finds the actor only after the
// spawn.
func (Conformance) AGroupKeepsTheOrderOfItsJobs(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	ref := func(i int) actor.Ref { return actor.Ref{Type: "toggle", ID: fmt.Sprint(i)} }
	const missing = true
	for i, c := range []struct {
		members []actor.Member
		missing []bool // whether the error of each job is a *fault.NotFound, else there is none
		exists  bool
	}{
		{[]actor.Member{actor.SendMember, actor.SpawnMember, actor.SendMember}, []bool{missing, false, false}, true},
		{[]actor.Member{actor.StopMember, actor.SpawnMember}, []bool{missing, false}, true},
		{[]actor.Member{actor.DeleteMember, actor.SpawnMember}, []bool{missing, false}, true},
		{[]actor.Member{actor.SpawnMember, actor.DeleteMember}, []bool{false, false}, false},
		{[]actor.Member{actor.SpawnMember, actor.DeleteMember, actor.SpawnMember}, []bool{false, false, false}, true},
		{[]actor.Member{actor.SpawnMember, actor.DeleteMember, actor.SendMember}, []bool{false, false, missing}, false},
	} {
		errs, err := f.actors.Group(enginetest.Context(t), ref(i), c.members...)
		enginetest.NoError(t, err)
		for j, err := range errs {
			if absent := new(fault.NotFound); errors.As(err, &absent) != c.missing[j] || !c.missing[j] && err != nil {
				t.Errorf("job %d of group %d: %v, want NotFound (%v)", j, i, err, c.missing[j])
			}
		}
		_, err = f.actors.Get(enginetest.Context(t), ref(i))
		if exists := err == nil; exists != c.exists {
			t.Errorf("the actor of group %d exists (%v), want (%v)", i, exists, c.exists)
		}
	}
}

func (Conformance) ManyActorsAreSpawnedTogether(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	specs := []actor.SpawnSpec{{Ref: actor.Ref{Type: "toggle", ID: "a"}}, {Ref: actor.Ref{Type: "toggle"}}, {Ref: actor.Ref{Type: "toggle", ID: "c"}}}
	receipts, err := f.actors.SpawnMany(enginetest.Context(t), specs, system, nil)
	enginetest.NoError(t, err)
	equal(t, "receipts", len(receipts), 3)
	for i, r := range receipts {
		if !r.Created || r.Sequence != 1 || r.View.Value != "off" || specs[i].Ref.ID != "" && r.Ref != specs[i].Ref {
			t.Errorf("receipt %d: %+v", i, r)
		}
		equal(t, "value", f.send(t, r.Ref, "FLIP").View.Value, any("on"))
	}
	specs[1].Ref.ID = "d"
	_, err = f.actors.SpawnMany(enginetest.Context(t), specs, system, nil)
	enginetest.As[*fault.Duplicate](t, err)
	_, err = f.actors.Get(enginetest.Context(t), specs[1].Ref)
	enginetest.As[*fault.NotFound](t, err)
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		receipts, err = f.actors.SpawnManyIn(tx, specs, system, &actor.SpawnOptions{IfAbsent: true})
		return err
	}))
	for i, r := range receipts {
		equal(t, "created", r.Created, i == 1)
	}
}
