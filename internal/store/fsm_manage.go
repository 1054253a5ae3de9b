package store

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// GetInstance returns the statement that reads an instance as a claim does.
func (s *Store) GetInstance(id string, found func(*Instance)) sqldb.Stmt {
	get := s.stmt("InstanceGet", id)
	get.Row = s.instanceRow(false, found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "instance", ID: id})
	return get
}

// InstanceView is an instance as it is displayed.
type InstanceView struct {
	ID, FSM           string
	Version           int
	Step, State       string
	Queue             string
	Priority          int
	Attempt, Failures int
	Crashes           int
	Parent, Partition *string
	UniqueKey, Error  *string
	Created, Due      time.Time
	Deadline          *time.Time
	Finished          *time.Time
	Result            *string
	// If Status is waiting, WaitsFor is the reason.
	Status, WaitsFor string
	Unreceived       int
	// CancelReason is set if the instance has continued with its cancel step. CancelStep is set
	// if its definition has one.
	CancelReason, CancelStep *string
}

// InstanceFilter restricts a list of instances. Empty fields match every instance.
type InstanceFilter struct {
	ID, FSM, Queue, Parent, Step string
	// IDs selects only these instances.
	IDs []string
	// Ended selects instances that finished with one of these statuses.
	Ended []string
	// Live selects unfinished instances.
	Live bool
	// Before is the id of the last row of the previous page.
	Before string
	Limit  int
}

// ShowInstances returns the statement that reads instances, newest first.
func (s *Store) ShowInstances(f InstanceFilter, now Now, found func(InstanceView)) sqldb.Stmt {
	w := conditions{}
	uuid := s.dialect.CastUUID()
	for _, c := range []struct{ text, value string }{
		{"i.id = ?" + uuid, f.ID},
		{"i.fsm = ?", f.FSM},
		{"i.parent_id = ?" + uuid, f.Parent},
		{"i.step = ?", f.Step},
		{"i.id < ?" + uuid, f.Before},
	} {
		if c.value != "" {
			w.add(c.text, c.value)
		}
	}
	if f.Queue != "" {
		w.add("(i.queue = ? or substr(i.queue, 1, ?) = ?)", f.Queue, utf8.RuneCountInString(f.Queue)+1, f.Queue+partMark)
	}
	ended := make([]any, len(f.Ended))
	for i, status := range f.Ended {
		ended[i] = status
	}
	w.in("f.status", ended)
	if len(f.IDs) > 0 {
		w.add("i.id in (" + placeholdersOf("?"+uuid, len(f.IDs)) + ")")
		for _, id := range f.IDs {
			w.args = append(w.args, id)
		}
	}
	if f.Live {
		w.add("f.id is null")
	}
	show := strings.ReplaceAll(s.text("InstanceShow"), "$1", "?") // the placeholder may already be numbered
	text := show + "\n" + strings.ReplaceAll(w.sql(), "\n", " ") + "order by i.id desc limit ?"
	return withRow(sqldb.Stmt{SQL: s.complete(text), Args: append(append([]any{at(now)}, w.args...), f.Limit)}, s.viewRow(found))
}

func (s *Store) viewRow(found func(InstanceView)) func(sqldb.Scan) error {
	return readRow(func(v InstanceView) {
		v.Status, v.WaitsFor = placeOf(v.Status)
		v.Queue = QueueOf(v.Queue)
		v.State, _ = s.open(instanceState, v.State, v.ID) // a state that cannot be decrypted is shown as it is stored
		v.Result, _ = s.openAny(finishedResult, v.Result, v.ID)
		found(v)
	}, func(v *InstanceView) []any {
		return []any{&v.ID, &v.FSM, &v.Version, &v.Step, &v.State, &v.Queue, &v.Priority, &v.Attempt, &v.Failures, &v.Crashes, &v.Parent, &v.Partition,
			&v.UniqueKey, &v.Error, &v.Created, &v.Due, &v.Deadline, &v.Finished, &v.Result, &v.Status, &v.Unreceived,
			&v.CancelReason, &v.CancelStep}
	})
}

// FinishedStatus returns the statement that reads the final status of an instance, if it has
// finished.
func (s *Store) FinishedStatus(id string, found func(string)) sqldb.Stmt {
	return oneColumn(s.stmt("FinishedStatus", id), found)
}

// LeaseOf returns the statement that finds the newest lease that names an
// instance.
func (s *Store) LeaseOf(id string, found func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseOf", id), found)
}

// TakeLease returns the statement that locks a lease against outcomes and the
// reaper.
func (s *Store) TakeLease(token string, found func(token string)) sqldb.Stmt {
	return oneColumn(s.stmt("LeaseTake", token), found)
}

// RemoveInstance returns the statements that remove an instance from all places that it is in.
// removed counts the places. queued is set if one of them was the queue of its partition. If
// keepQueued is true, the instance stays in that queue. The instance keeps the data of its
// wait.
func (s *Store) RemoveInstance(id string, now Now, keepQueued bool, removed *int64, queued *bool) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	*removed, *queued = 0, false
	for _, name := range []string{"ReadyRemove", "WaitingRemove", "BarrierRemove", "UnroutedRemove", "PartitionRemove"} {
		if keepQueued && name == "PartitionRemove" {
			continue
		}
		args := []any{id}
		if name == "WaitingRemove" || name == "BarrierRemove" {
			args = append(args, at(now))
		}
		remove := s.stmts(name, args...)
		remove[len(remove)-1].Done = func(rows int64) error {
			*removed += rows
			if name == "PartitionRemove" {
				*queued = rows > 0
			}
			return nil
		}
		stmts = append(stmts, remove...)
	}
	return stmts
}

// MakeInstanceDue returns the statements that make an instance due now if it waits for its due
// time or for a worker. found is called with its queue if it does.
func (s *Store) MakeInstanceDue(id string, now Now, found func(queue string)) []sqldb.Stmt {
	return s.waking("InstanceHasten", found, at(now), id)
}

// Interrupt returns the statement that takes a claim away from a lease that stays valid.
func (s *Store) Interrupt(h Held) sqldb.Stmt { return s.stmt("InterruptInsert", h.ID, h.Token) }

// OldInstances returns the statement that finds and locks up to limit instances that finished
// longer than age ago: dead letters or the others.
func (s *Store) OldInstances(dead bool, age time.Duration, limit int, now Now, found func(id string)) sqldb.Stmt {
	name := "InstancesOver"
	if dead {
		name = "InstancesDead"
	}
	return oneColumn(s.stmt(name, at(now), age.Microseconds(), limit), found)
}

// FinishedState returns the statement that reads the final status of an instance, nil if it has
// not finished, and whether its unfinished parent may still read it.
func (s *Store) FinishedState(id string, found func(status *string, parent string, needed bool)) sqldb.Stmt {
	return threeColumns(s.stmt("InstanceFinished", id), found)
}

// DeleteInstances returns the statements that remove finished instances and all rows that
// belong to them.
func (s *Store) DeleteInstances(ids []string) []sqldb.Stmt {
	return s.stmts("InstanceDelete", one(ids))
}
