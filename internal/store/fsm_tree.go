package store

import (
	"cmp"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// The kinds of a TreeEnd.
const (
	// TreeEnded: the parent has ended.
	TreeEnded = "end"
	// TreeCancelled: the parent continues without the children.
	TreeCancelled = "cancel"
	// TreeReopened: the end of the parent was taken back.
	TreeReopened = "reopen"
)

// TreeEnd is a row of children that must be cancelled or reopened.
type TreeEnd struct {
	Seq         int64
	Parent      string
	First, Last int // fan-outs
	Kind        string
	Root        string
	Reason      string
	// Begun says that children were handled in this pass, so the rows before them
	// are not looked at.
	Begun bool
	// Lives says that the parent exists and has not ended.
	Lives bool
	// Blocked says that an earlier row of the same parent must be handled first.
	Blocked bool
}

// InsertTreeEnds returns the statement that records children to be handled. Rows of
// one parent are handled in the order in which they were recorded. Processes that are
// not working on the rows take them over after a while.
func (s *Store) InsertTreeEnds(rows []TreeEnd, after time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TreeInsert", after.Microseconds(), tuples{
		column(rows, func(r TreeEnd) string { return r.Parent }),
		column(rows, func(r TreeEnd) int { return r.First }),
		column(rows, func(r TreeEnd) int { return r.Last }),
		column(rows, func(r TreeEnd) string { return r.Kind }),
		column(rows, func(r TreeEnd) string { return r.Root }),
		column(rows, func(r TreeEnd) string { return r.Reason }),
	}, at(now))
}

// TakeTreeEnds returns the statement that locks rows that no other process has
// locked: of one tree, with those that must be handled before them, or of all if root
// is empty.
func (s *Store) TakeTreeEnds(root string, limit int, found func(TreeEnd)) sqldb.Stmt {
	take := s.stmt("TreeTake", limit)
	if root != "" {
		take = s.stmt("TreeTakeOf", root, limit)
	}
	return read(take, found, func(r *TreeEnd) []any {
		return []any{&r.Seq, &r.Parent, &r.First, &r.Last, &r.Kind, &r.Root, &r.Reason, &r.Begun, &r.Lives, &r.Blocked}
	})
}

// TreeEndsLeft returns the statement that reports whether rows of a tree are left.
func (s *Store) TreeEndsLeft(root string, found func()) sqldb.Stmt {
	return withRow(s.stmt("TreeLeft", root), anyRow(found))
}

// TreePass is how far the pass over the children of a row has come. A row without
// Fanout begins anew.
type TreePass struct {
	Seq             int64
	Fanout, Ordinal *int
}

// AdvanceTreeEnds returns the statement that stores how far passes have come.
func (s *Store) AdvanceTreeEnds(passes []TreePass, after time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TreeAdvance", at(now), after.Microseconds(), tuples{
		column(passes, func(p TreePass) int64 { return p.Seq }),
		column(passes, func(p TreePass) *int { return p.Fanout }),
		column(passes, func(p TreePass) *int { return p.Ordinal }),
	})
}

// DropTreeEnds returns the statement that removes rows whose children are handled.
func (s *Store) DropTreeEnds(seqs []int64) sqldb.Stmt { return s.stmt("TreeDelete", one(seqs)) }

// TreeChild is a child that a row is about.
type TreeChild struct {
	Seq             int64
	ID              string
	Fanout, Ordinal int
}

// LiveTreeChildren returns the statement that finds up to limit live children of
// rows, in the order of the passes.
func (s *Store) LiveTreeChildren(seqs []int64, limit int, found func(TreeChild)) sqldb.Stmt {
	return withRow(s.stmt("TreeLive", one(seqs), limit), treeChildRow(found))
}

func treeChildRow(found func(TreeChild)) func(sqldb.Scan) error {
	return readRow(found, func(c *TreeChild) []any { return []any{&c.Seq, &c.ID, &c.Fanout, &c.Ordinal} })
}

// EndsDue returns the statement that reports whether a deadline has passed or a tree
// waits for a process.
func (s *Store) EndsDue(now Now, found func()) sqldb.Stmt {
	return withRow(s.stmt("EndsDue", at(now)), anyRow(found))
}

func anyRow(found func()) func(sqldb.Scan) error {
	return readRow(func(int) { found() }, func(one *int) []any { return []any{one} })
}

// ExpiredDeadlines returns the statement that finds instances that have passed their
// deadline, the earliest first, without the given ones.
func (s *Store) ExpiredDeadlines(without []string, limit int, now Now, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("DeadlineTake", at(now), one(without), limit), found)
}

// TakeLeasesOf returns the statement that locks the leases that name instances,
// except those that others have locked.
func (s *Store) TakeLeasesOf(ids []string, found func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseTakeMany", one(ids)), found)
}

// Doomed is what the end of an instance from outside needs to know of it.
type Doomed struct {
	Instance
	Queue string
	// CancelStep is the step that runs when the instance is cancelled, if its
	// definition names one.
	CancelStep *string
}

// DoomedInstances returns the statement that reads instances that are to be ended.
func (s *Store) DoomedInstances(ids []string, found func(Doomed)) sqldb.Stmt {
	read := s.stmt("InstanceEndsMany", one(ids))
	read.Row = func(scan sqldb.Scan) error {
		var e Doomed
		var awaits, seen *string
		err := scan(&e.ID, &e.Step, &e.Attempt, &e.Crashes, &e.Fanout, &e.Parent, &e.ParentFanout, &e.Partition, &e.UniqueName, &e.UniqueKey, &e.UniqueScope,
			&e.Deadline, &e.Queue, &awaits, &seen, &e.CancelReason, &e.CancelStep)
		if err != nil {
			return err
		}
		e.Unreadable = cmp.Or(parseJSON("awaited signals", awaits, &e.Awaits), parseJSON("seen signals", seen, &e.Seen)) // it ends all the same
		found(e)
		return nil
	}
	return read
}

// TakePartitions returns the statement that locks partition keys, except those that
// others have locked.
func (s *Store) TakePartitions(keys []string, found func(key string)) sqldb.Stmt {
	return oneColumn(s.stmt("PartitionTakeMany", one(keys)), found)
}

// TakeBarriers returns the statement that locks the barriers of parents, except those
// that others have locked.
func (s *Store) TakeBarriers(parents []string, found func(parent string)) sqldb.Stmt {
	return oneColumn(s.stmt("BarrierTakeMany", one(parents)), found)
}

// SeeBarriers returns the statement that finds the barriers of parents.
func (s *Store) SeeBarriers(parents []string, found func(parent string)) sqldb.Stmt {
	return oneColumn(s.stmt("BarrierSeeMany", one(parents)), found)
}

// PartitionMember is an instance of a partition.
type PartitionMember struct{ Key, ID string }

// RemoveInstances returns the statements that take instances out of the places that
// they are in, except rows that others have locked; removed gets the instances that
// were in one, and queued those that were in the queue of their partition. They keep
// what they waited for.
func (s *Store) RemoveInstances(ids []string, members []PartitionMember, now Now, removed, queued func(id string)) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for _, name := range []string{"ReadyRemoveMany", "WaitingRemoveMany", "BarrierRemoveMany", "UnroutedRemoveMany"} {
		args := []any{one(ids)}
		if name == "WaitingRemoveMany" || name == "BarrierRemoveMany" {
			args = append(args, at(now))
		}
		stmts = append(stmts, s.waking(name, removed, args...)...)
	}
	if len(members) == 0 {
		return stmts
	}
	return append(stmts, s.waking("PartitionRemoveMany", queued, tuples{
		column(members, func(m PartitionMember) string { return m.Key }),
		column(members, func(m PartitionMember) string { return m.ID }),
	})...)
}

// HeldInstances returns the statement that finds the leases that hold instances,
// the newest first.
func (s *Store) HeldInstances(ids []string, found func(Held)) sqldb.Stmt {
	return read(s.stmt("HeldMany", one(ids)), found, func(h *Held) []any { return []any{&h.ID, &h.Token} })
}

// FinishedAmong returns the statement that finds the instances that have ended.
func (s *Store) FinishedAmong(ids []string, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("FinishedMany", one(ids)), found)
}

// InterruptAll returns the statement that takes claims away from leases that
// continue.
func (s *Store) InterruptAll(held []Held) sqldb.Stmt {
	return s.stmt("InterruptMany", heldColumns(held))
}
