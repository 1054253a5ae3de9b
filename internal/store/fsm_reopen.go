package store

import "github.com/perdure/perdure/internal/sqldb"

// Uncounted is the number of pending children of a barrier whose children are being reopened.
// Finished children are subtracted from it, but it never reaches the number that opens the
// barrier. Recount replaces it.
const Uncounted = 1_000_000_000

// ReopenInstances returns the statements that reopen finished instances. Their unique keys must
// have been entered again before.
func (s *Store) ReopenInstances(ids []string, now Now) []sqldb.Stmt {
	return []sqldb.Stmt{s.stmt("InstanceReset", at(now), one(ids)), s.stmt("InstanceUncancel", one(ids)), s.ReopenJournal(ids), s.stmt("DeadlineEnter", one(ids)), s.stmt("FinishedRevive", one(ids))}
}

// EnterUniques returns the statement that occupies free unique keys.
func (s *Store) EnterUniques(keys []Occupied) sqldb.Stmt {
	return s.stmt("UniqueEnter", tuples{
		column(keys, func(k Occupied) string { return k.Name }),
		column(keys, func(k Occupied) string { return k.Key }),
		column(keys, func(k Occupied) string { return k.ID }),
	})
}

// EnterQueues returns the statements that put instances into their queues, behind the other
// instances of their partitions.
func (s *Store) EnterQueues(ids []string) []sqldb.Stmt {
	return []sqldb.Stmt{s.stmt("PartitionEnter", one(ids)), s.stmt("PartitionQueue", one(ids)), s.stmt("InstanceReady", one(ids))}
}

// ClosedTreeChildren returns the statement that finds up to limit children that finished
// because their parent finished, in the order of the passes.
func (s *Store) ClosedTreeChildren(seqs []int64, limit int, found func(TreeChild)) sqldb.Stmt {
	return withRow(s.stmt("TreeClosed", one(seqs), limit), treeChildRow(found))
}

// KeepEnded returns the statement that keeps instances finished: a retry of their parent does
// not reopen them.
func (s *Store) KeepEnded(ids []string) sqldb.Stmt { return s.stmt("FinishedOwn", one(ids)) }

// Recount returns the statements that count the unfinished children at uncounted barriers, and
// release the parents that have enough. The barriers must be locked.
func (s *Store) Recount(parents []string, now Now, woken func(queue string)) []sqldb.Stmt {
	return append(s.stmts("BarrierRecount", one(parents)), s.waking("BarrierOpen", woken, one(parents), at(now))...)
}
