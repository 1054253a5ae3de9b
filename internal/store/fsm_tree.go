package store

import (
	"cmp"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// The kinds of a TreeEnd.
const (
	// TreeEnded: the parent has finished.
	TreeEnded = "end"
	// TreeCancelled: the parent continues without the children.
	TreeCancelled = "cancel"
	// TreeReopened: the parent was reopened.
	TreeReopened = "reopen"
)

// TreeEnd is a row that selects children that must be cancelled or reopened.
type TreeEnd struct {
	Seq         int64
	Parent      string
	First, Last int // fan-outs
	Kind        string
	Root        string
	Reason      string
	// Begun is true if children were handled in this pass. The children before them are then
	// skipped.
	Begun bool
	// Lives is true if the parent exists and has not finished.
	Lives bool
	// Blocked is true if an earlier row of the same parent must be handled first.
	Blocked bool
}

// InsertTreeEnds returns the statement that records children to be handled. Rows of one parent
// are handled in the order in which they were recorded. After the duration after, other
// processes take over the rows.
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

// TakeTreeEnds returns the statement that locks rows that no other process has locked. It locks
// the rows of one tree and the rows that must be handled before them, or all rows if root is
// empty.
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

// TreePass is the progress of the pass over the children of a row. A row without Fanout starts
// over.
type TreePass struct {
	Seq             int64
	Fanout, Ordinal *int
}

// AdvanceTreeEnds returns the statement that stores the progress of passes.
func (s *Store) AdvanceTreeEnds(passes []TreePass, after time.Duration, now Now) sqldb.Stmt {
	return s.stmt("TreeAdvance", at(now), after.Microseconds(), tuples{
		column(passes, func(p TreePass) int64 { return p.Seq }),
		column(passes, func(p TreePass) *int { return p.Fanout }),
		column(passes, func(p TreePass) *int { return p.Ordinal }),
	})
}

// DropTreeEnds returns the statement that removes rows whose children are handled.
func (s *Store) DropTreeEnds(seqs []int64) sqldb.Stmt { return s.stmt("TreeDelete", one(seqs)) }

// TreeChild is a child that a row selects.
type TreeChild struct {
	Seq             int64
	ID              string
	Fanout, Ordinal int
}

// LiveTreeChildren returns the statement that finds up to limit unfinished children of rows, in
// the order of the passes.
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

// ExpiredDeadlines returns the statement that finds instances that have passed their deadline,
// earliest first, except the instances in without.
func (s *Store) ExpiredDeadlines(without []string, limit int, now Now, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("DeadlineTake", at(now), one(without), limit), found)
}

// TakeLeasesOf returns the statement that locks the leases that name instances. It skips leases
// that other transactions have locked.
func (s *Store) TakeLeasesOf(ids []string, found func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseTakeMany", one(ids)), found)
}

// Unfinished is the data that is needed to finish an instance from outside.
type Unfinished struct {
	Instance
	Queue string
	// CancelStep is the step that runs when the instance is cancelled, if its
	// definition names one.
	CancelStep *string
}

// ReadUnfinished returns the statement that reads instances that are about to be finished.
func (s *Store) ReadUnfinished(ids []string, found func(Unfinished)) sqldb.Stmt {
	read := s.stmt("InstanceEndsMany", one(ids))
	read.Row = func(scan sqldb.Scan) error {
		var e Unfinished
		var awaits, seen *string
		err := scan(&e.ID, &e.Step, &e.Attempt, &e.Crashes, &e.Fanout, &e.Parent, &e.ParentFanout, &e.Partition, &e.UniqueName, &e.UniqueKey, &e.UniqueScope,
			&e.Deadline, &e.Queue, &awaits, &seen, &e.CancelReason, &e.CancelStep)
		if err != nil {
			return err
		}
		e.Queue = QueueOf(e.Queue)
		e.Unreadable = cmp.Or(parseJSON("awaited signals", awaits, &e.Awaits), parseJSON("seen signals", seen, &e.Seen)) // the instance is finished even if they cannot be read
		found(e)
		return nil
	}
	return read
}

// TakePartitions returns the statement that locks partition keys. It skips keys that other
// transactions have locked.
func (s *Store) TakePartitions(keys []string, found func(key string)) sqldb.Stmt {
	return oneColumn(s.stmt("PartitionTakeMany", one(keys)), found)
}

// TakeBarriers returns the statement that locks the barriers of parents. It skips barriers that
// other transactions have locked.
func (s *Store) TakeBarriers(parents []string, found func(parent string)) sqldb.Stmt {
	return oneColumn(s.stmt("BarrierTakeMany", one(parents)), found)
}

// FindBarriers returns the statement that finds the barriers of parents.
func (s *Store) FindBarriers(parents []string, found func(parent string)) sqldb.Stmt {
	return oneColumn(s.stmt("BarrierSeeMany", one(parents)), found)
}

// PartitionMember is an instance of a partition.
type PartitionMember struct{ Key, ID string }

// RemoveInstances returns the statements that remove instances from the places that they are
// in. They skip rows that other transactions have locked. removed receives the instances that
// were in a place, and queued the instances that were in the queue of their partition. The
// instances keep the data of their waits.
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

// HeldInstances returns the statement that finds the leases that hold instances, newest first.
func (s *Store) HeldInstances(ids []string, found func(Held)) sqldb.Stmt {
	return read(s.stmt("HeldMany", one(ids)), found, func(h *Held) []any { return []any{&h.ID, &h.Token} })
}

// FinishedAmong returns the statement that finds the instances that have finished.
func (s *Store) FinishedAmong(ids []string, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("FinishedMany", one(ids)), found)
}

// InterruptAll returns the statement that takes claims away from leases that stay valid.
func (s *Store) InterruptAll(held []Held) sqldb.Stmt {
	return s.stmt("InterruptMany", heldColumns(held))
}
