package fsm

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/work"
)

// endsAtOnce is a machine of one step.
func endsAtOnce(name, queue string) *Definition[int] {
	return Define(name, 1, &DefinitionOptions[int]{Queue: queue}, Step("only", func(_ context.Context, r *Run[int]) (Outcome, error) { return r.Done(nil), nil }, nil))
}

// While a transaction that ends a piece of a tree is open, with a deadline that has
// passed, another process claims and runs the instances of another queue: it waits
// for nothing.
func TestOtherQueuesDoNotWaitForAPieceOfATree(t *testing.T) {
	t.Parallel()
	url := enginetest.New(t, enginetest.Postgres).DSN
	open := func(queue string) (*perdure.Engine, *Machines) {
		eng, err := perdure.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = eng.Close() })
		m, err := New(eng, &Options{Queues: map[string]int{queue: 10}, OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Drain(context.WithoutCancel(t.Context())) })
		return eng, m
	}
	eng, m := open("tree")
	child := endsAtOnce("child", "tree")
	late := &StartOptions{Delay: 1 << 60}
	root := Define("root", 1, &DefinitionOptions[int]{Queue: "tree"},
		Step("fan", func(_ context.Context, r *Run[int]) (Outcome, error) {
			specs := make([]ChildSpec, 2*treeChildren)
			for i := range specs {
				specs[i] = ChildOf(child, 0, late)
			}
			return r.Spawn(specs...).Then("join"), nil
		}, nil),
		Step("join", func(_ context.Context, r *Run[int]) (Outcome, error) { return r.Done(nil), nil }, nil),
	)
	if err := m.Register(root, child); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		started, err := Start(t.Context(), eng, root, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, started.ID)
	}
	if _, err := m.Process(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.tryEnd(t.Context(), ids[0], Cancelled, "no", false); err != nil {
		t.Fatal(err)
	}
	expire(t, m, ids[1])
	tx, err := m.rt.DB.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	piece := &piece{machines: m, tx: tx, wakeups: &work.Wakeups{}}
	if err := piece.run(t.Context(), ""); err != nil || piece.handled != treeChildren {
		t.Fatalf("%d children were ended, want %d: %v", piece.handled, treeChildren, err)
	}
	overdue := newTaking(m, tx, []endTarget{{id: ids[1], status: Failed, reason: deadlineExceeded, root: ids[1]}}, &work.Wakeups{})
	if err := overdue.run(t.Context()); err != nil || !overdue.handled[ids[1]] {
		t.Fatalf("the instance past its deadline was not ended: %v", err)
	}

	otherEng, other := open("other")
	quick := endsAtOnce("quick", "other")
	if err := other.Register(quick); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		started, err := Start(t.Context(), otherEng, quick, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Wait(t.Context(), started.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// expire gives an instance a deadline that has passed.
func expire(t *testing.T, m *Machines, id string) {
	t.Helper()
	err := m.transact(t.Context(), func(tx sqldb.Tx) error {
		return tx.Run(t.Context(),
			sqldb.Exec("update perdure.instances set deadline_at = '2020-01-01Z' where id = $1", id),
			sqldb.Exec("insert into perdure.deadlines (at, id) values ('2020-01-01Z', $1)", id),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}
