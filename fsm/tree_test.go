package fsm_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/torture"
)

// late is longer than any test.
var late = &fsm.StartOptions{Delay: 20 * 365 * 24 * time.Hour}

// wide is a machine that spawns n children which do not become due.
func wide(name string, n int) *fsm.Definition[int] {
	return parentOf(name, func(r run) fsm.Outcome {
		specs := make([]fsm.ChildSpec, n)
		for i := range specs {
			specs[i] = fsm.ChildOf(leaf, 1, late)
		}
		return r.Spawn(specs...)
	}, story)
}

// placesOfLive are the tables that hold nothing of instances that have ended.
var placesOfLive = []string{
	"ready", "waiting", "barriers", "unrouted", "partition_heads", "partition_waiting", "uniques", "deadlines", "interrupts", "leases", "tree_ends",
}

// wantGone fails the test if something is left of instances that have ended.
func (f *fixture) wantGone() {
	f.t.Helper()
	for _, table := range placesOfLive {
		f.wantRows(table, 0)
	}
}

// Cancel returns when a tree of any shape has ended: the pieces of a wide level, and
// many levels.
func TestCancelEndsTreesOfAnyShape(t *testing.T) {
	each(t, func(f *fixture) {
		middle := wide("middle", 3)
		d := parentOf("root", func(r run) fsm.Outcome {
			var specs []fsm.ChildSpec
			for range rounds(400) {
				specs = append(specs, fsm.ChildOf(leaf, 1, late), fsm.ChildOf(middle, 0, nil))
			}
			return r.Spawn(specs...)
		}, story)
		f.register(d, middle, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "no longer needed"))
		f.wantGone()
		f.wantRows("finished", int64(1+rounds(400)*5))
	})
}

// A tree whose root has passed its deadline ends outside the transaction that claims,
// in pieces.
func TestADeadlineEndsALargeTree(t *testing.T) {
	each(t, func(f *fixture) {
		n := rounds(1200)
		d := wide("wide", n)
		f.register(d, leaf)
		id := start(f, d, 0, &fsm.StartOptions{Deadline: time.Minute})
		f.drain()
		f.after(time.Minute)
		f.wantStatus(id, fsm.Failed)
		f.wantGone()
		f.wantRows("finished", int64(n+1))
	})
}

// CancelIn ends a bounded number of children in the transaction of the unit; a process
// that serves state machines ends the rest.
func TestCancelInLeavesTheRestOfALargeTree(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		const n = 2700
		d := wide("wide", n)
		client := f.beside(f.clock, nil) // it serves nothing
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		enginetest.NoError(t, client.eng.Update(t.Context(), func(tx *perdure.Tx) error { return client.CancelIn(tx, id, "no longer needed") }))
		f.wantStatus(id, fsm.Cancelled)
		if ended := f.db.Rows(t, "perdure", "finished"); ended < 1000 || ended > 1501 {
			t.Errorf("%d instances have ended in the unit, want 1,000 to 1,501", ended)
		}
		f.wantRows("tree_ends", 1)
		f.after(time.Second)
		f.wantGone()
		f.wantRows("finished", n+1)
	})
}

// dying are the arguments of a child that cancels a tree and is killed after some
// transactions.
type dying struct {
	DSN, ID string
	Pieces  int
}

// cancelAndDie is the role of that child.
func cancelAndDie(ctx context.Context, self *torture.Self) error {
	return dieAfterPieces(self, func(machines *fsm.Machines, id string) error { return machines.Cancel(ctx, id, "no longer needed") })
}

// dieAfterPieces kills its process in the middle of a change of a tree.
func dieAfterPieces(self *torture.Self, change func(machines *fsm.Machines, id string) error) error {
	var args dying
	if err := self.Args(&args); err != nil {
		return err
	}
	eng, err := perdure.Open(context.Background(), args.DSN, nil)
	if err != nil {
		return err
	}
	machines, err := fsm.New(eng, nil)
	if err != nil {
		return err
	}
	pieces := 0
	failpoint.Set("fsm.tree.piece", func() error {
		if pieces++; pieces == args.Pieces {
			process, _ := os.FindProcess(os.Getpid())
			_ = process.Kill()
			select {}
		}
		return nil
	})
	self.Ready()
	return change(machines, args.ID)
}

// A process is killed while it ends a tree: another one ends the rest.
func TestAKilledCancelIsContinued(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), nil)
			const n = 1700
			d := wide("wide", n)
			f.register(d, leaf)
			id := start(f, d, 0, nil)
			f.drain()
			child, err := torture.StartChild("cancels", dying{DSN: f.db.DSN, ID: id, Pieces: 2})
			enginetest.NoError(t, err)
			_ = child.Wait()
			f.wantStatus(id, fsm.Cancelled)
			f.wantRows("tree_ends", 1)
			f.wantRows("finished", 1001)
			f.clock.Set(time.Now().Add(time.Hour)) // the child had the real time
			f.drain()
			f.wantGone()
			f.wantRows("finished", n+1)
		})
	}
}

// An instance past its deadline that cannot be ended is reported, and the others end.
func TestOneDeadlineThatFailsHoldsUpNoOther(t *testing.T) {
	var reported sync.Map // by all databases
	eachWith(t, fsm.Options{OnError: func(err error) { reported.Store(err.Error(), true) }}, func(f *fixture) {
		t := f.t
		d := parker("parked", "go")
		f.register(d)
		var ids []string
		for range 5 {
			ids = append(ids, start(f, d, 0, &fsm.StartOptions{Deadline: time.Minute}))
		}
		f.drain()
		refuse, permit := refusal(f.db.Name, f.table("finished"), ids[2])
		for _, text := range refuse {
			f.db.Exec(t, text)
		}
		f.clock.Advance(time.Minute)
		for i, id := range ids {
			if i != 2 {
				enginetest.Eventually(t, "the others end", func() bool {
					_, err := f.Start(t.Context())
					enginetest.NoError(t, err)
					return f.get(id).Status == fsm.Failed
				})
			}
		}
		enginetest.Eventually(t, "the one that cannot end is reported", func() (found bool) {
			reported.Range(func(message, _ any) bool {
				found = found || strings.Contains(message.(string), ids[2])
				return !found
			})
			return found
		})
		f.wantWait(ids[2], fsm.ForSignal)
		f.db.Exec(t, permit)
		enginetest.Eventually(t, "the last one ends", func() bool { f.drain(); return f.get(ids[2]).Status == fsm.Failed })
	})
}

// refusal returns statements that have the database refuse rows of an id, and undo
// that.
func refusal(database, table, id string) (refuse []string, permit string) {
	switch database {
	case enginetest.SQLite:
		return []string{fmt.Sprintf("create trigger refused before insert on %s when new.id = '%s' begin select raise(abort, 'refused'); end", table, id)},
			"drop trigger refused"
	case enginetest.MySQL:
		return []string{fmt.Sprintf("create trigger refused before insert on %s for each row if new.id = '%s' then signal sqlstate '45000' set message_text = 'refused'; end if", table, id)},
			"drop trigger refused"
	}
	return []string{
		"create function refused() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$",
		fmt.Sprintf("create trigger refused before insert on %s for each row when (new.id = '%s') execute function refused()", table, id),
	}, "drop trigger refused on " + table
}
