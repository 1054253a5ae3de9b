package fsm_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A lease expires while the step runs on: the second execution is committed, the
// outcome of the first is dropped.
func TestCase11AStaleOutcomeIsDropped(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		for _, kind := range []string{"done", "stop", "next", "replay", "await", "spawn"} {
			var runs, lost counter
			slow := newGate(t)
			d := fsm.Define("stale "+kind, 1, nil,
				fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
					if runs.add() > 1 {
						r.State = 2
						return r.Await("go").Then("end"), nil
					}
					slow.pass(r.ID)
					r.State = 1
					return map[string]fsm.Outcome{
						"done": r.Done("stale"), "stop": r.Stop("stale"), "next": r.Next("end"), "replay": r.Replay(0),
						"await": r.Await("stale").Then("end"), "spawn": r.Spawn(fsm.ChildOf(leaf, 1, nil)).Then("end"),
					}[kind], nil
				}, nil),
				fsm.Step("end", done, nil),
			)
			zombie := f.other(quiet(&lost))
			zombie.register(d)
			f.register(d)
			id := start(f, d, 0, nil)
			wait := zombie.begin()
			slow.await(t)
			f.after(minute)
			before := f.get(id)
			slow.release()
			wait()
			after := f.get(id)
			if before.WaitsFor != fsm.ForSignal || string(after.State) != "2" || after.Status != before.Status || after.Error != before.Error {
				t.Errorf("%s: the instance was %+v, is %+v", kind, before, after)
			}
			lost.is(t, kind+": stale outcomes", 1)
			f.send(id, "go", nil)
			f.drain()
			f.wantResult(id, "2")
		}
		f.wantRows("leases", 0)
	})
}

// The same worker claims its own reaped instance again: its first execution has no
// right to write either.
func TestCase12TheSameWorkerIsFencedOffToo(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		var runs counter
		slow := newGate(t)
		d := machine("own", func(_ context.Context, r run) (fsm.Outcome, error) {
			n := runs.add()
			if n == 1 {
				slow.pass(r.ID)
			}
			return r.Done(n), nil
		})
		f.register(d)
		id := start(f, d, 0, nil)
		wait := f.begin()
		slow.await(t)
		f.expireLeases()
		if _, err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		enginetest.Eventually(t, "the second execution ends", func() bool { return f.get(id).Status.Finished() })
		slow.release()
		wait()
		f.wantResult(id, "2")
		runs.is(t, "executions", 2)
	})
}

// A stale end touches neither the inbox nor the barrier of the parent.
func TestCase13AStaleEndHasNoSideEffects(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var lost counter
		first, second := newGate(t), newGate(t)
		var runs tally
		child := machine("child", func(_ context.Context, r run) (fsm.Outcome, error) {
			if runs.add(fmt.Sprint(r.State)) == 1 {
				first.pass(r.ID)
			} else {
				second.pass(r.ID)
			}
			return r.Done(nil), nil
		})
		parent := fsm.Define("parent", 1, nil,
			fsm.Step("fan", always(func(r run) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, &fsm.StartOptions{Delay: time.Hour})).Then("join")
			}), nil),
			fsm.Step("join", done, nil),
		)
		zombie := f.other(quiet(&lost))
		zombie.register(child, parent)
		f.register(child, parent)
		id := start(f, parent, 0, nil)
		wait := zombie.begin()
		kid := first.await(t)
		f.send(kid, "hello", nil)
		f.clock.Advance(minute)
		again := f.begin()
		second.await(t)
		first.release()
		wait()
		lost.is(t, "stale outcomes", 1)
		f.wantWait(id, fsm.ForChildren)
		f.wantStatus(kid, fsm.Running)
		f.wantRows("signals", 1)
		if n := f.db.Int(t, "select pending from "+f.table("barriers")); n != 2 {
			t.Errorf("the barrier waits for %d, want 2", n)
		}
		second.release()
		again()
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantResult(id, "0")
	})
}

// A stale fan-out starts no children and consumes no signals.
func TestCase14AStaleSpawnStartsNothing(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var lost, runs counter
		slow := newGate(t)
		d := fsm.Define("spawner", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("fan") }), nil),
			fsm.Step("fan", func(_ context.Context, r run) (fsm.Outcome, error) {
				if runs.add() == 1 {
					slow.pass(r.ID)
					return r.Spawn(fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(leaf, 3, nil)).Then("end"), nil
				}
				return r.Replay(24 * time.Hour), nil
			}, nil),
			fsm.Step("end", done, nil),
		)
		zombie := f.other(quiet(&lost))
		zombie.register(d, leaf)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "go", nil)
		wait := zombie.begin()
		slow.await(t)
		f.after(minute)
		slow.release()
		wait()
		lost.is(t, "stale outcomes", 1)
		f.wantStatus(id, fsm.Scheduled)
		f.wantRows("instances", 1)
		f.wantRows("signals", 1)
		f.wantRows("barriers", 0)
	})
}
