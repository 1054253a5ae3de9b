package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Place is where instances of a status are found.
type Place string

// The places that have instances by their id, newest first.
const (
	EveryPlace     Place = "InspectInstances"
	EndedPlace     Place = "InspectEnded"
	DonePlace      Place = "InspectDone"
	DeadPlace      Place = "InspectDead"
	CancelledPlace Place = "InspectCancelled"
	StoppedPlace   Place = "InspectStopped"
	WaitingPlace   Place = "InspectWaiting"
	BarrierPlace   Place = "InspectBarriers"
	ExecutingPlace Place = "InspectExecuting"
	UnroutedPlace  Place = "InspectUnrouted"
)

// InstancesIn returns the statement that walks along the instances of a place, from
// the newest that is older than before.
func (s *Store) InstancesIn(p Place, before string, limit int, found func(id string)) sqldb.Stmt {
	walk := s.stmt(string(p), before, limit)
	walk.Row = textRow(found)
	return walk
}

// InstancesOf is InstancesIn for all instances of one machine.
func (s *Store) InstancesOf(fsm, before string, limit int, found func(id string)) sqldb.Stmt {
	walk := s.stmt("InspectInstancesOf", fsm, before, limit)
	walk.Row = textRow(found)
	return walk
}

// UniqueInstances returns the statement that finds the instances that have a unique
// key.
func (s *Store) UniqueInstances(key string, limit int, found func(id string)) sqldb.Stmt {
	find := s.stmt("InspectUnique", key, limit)
	find.Row = textRow(found)
	return find
}

// QueuedInstance is an instance that waits for its turn in a partition.
type QueuedInstance struct {
	Key string
	Seq int64
	ID  string
}

// QueuedInstances returns the statement that walks along the partitions.
func (s *Store) QueuedInstances(after QueuedInstance, limit int, found func(QueuedInstance)) sqldb.Stmt {
	walk := s.stmt("InspectQueued", after.Key, after.Seq, limit)
	walk.Row = func(scan sqldb.Scan) error {
		var q QueuedInstance
		err := scan(&q.Key, &q.Seq, &q.ID)
		if err == nil {
			found(q)
		}
		return err
	}
	return walk
}

// ReadyGroup is a queue and an urgency: instances of one group are in the order of
// their due times.
type ReadyGroup struct {
	Queue    string
	Suspect  bool
	Priority int
}

// NextReadyGroup returns the statement that finds the group of instances after one, if
// there is any.
func (s *Store) NextReadyGroup(after ReadyGroup, found func(ReadyGroup)) sqldb.Stmt {
	next := s.stmt("InspectReadyGroup", after.Queue, after.Suspect, after.Priority)
	next.Row = func(scan sqldb.Scan) error {
		var g ReadyGroup
		err := scan(&g.Queue, &g.Suspect, &g.Priority)
		if err == nil {
			found(g)
		}
		return err
	}
	return next
}

// DueInstance is an instance that may run when it is due.
type DueInstance struct {
	Due time.Time
	ID  string
}

// DueInstances returns the statement that walks along a group in the order of due
// times, from after one to a time.
func (s *Store) DueInstances(g ReadyGroup, after DueInstance, until time.Time, limit int, found func(DueInstance)) sqldb.Stmt {
	walk := s.stmt("InspectReady", g.Queue, g.Suspect, g.Priority, after.Due, after.ID, until, limit)
	walk.Row = func(scan sqldb.Scan) error {
		var d DueInstance
		err := scan(&d.Due, &d.ID)
		if err == nil {
			d.Due = d.Due.UTC()
			found(d)
		}
		return err
	}
	return walk
}

// SignalView is a signal in the inbox of an instance.
type SignalView struct {
	Seq           int64
	Name, Payload string
	Created       time.Time
	Received      bool
}

// SignalsOf returns the statement that reads the inbox of an instance, in the order
// of arrival.
func (s *Store) SignalsOf(id string, after int64, limit int, found func(SignalView)) sqldb.Stmt {
	list := s.stmt("InspectSignals", id, after, limit)
	list.Row = func(scan sqldb.Scan) error {
		var v SignalView
		err := scan(&v.Seq, &v.Name, &v.Payload, &v.Created, &v.Received)
		if err == nil {
			v.Payload, _ = s.open(signalPayload, v.Payload, id, v.Name) // what has no key here is shown as it is stored
			found(v)
		}
		return err
	}
	return list
}

// InstanceStatus is what a list of instances is filtered by.
type InstanceStatus struct {
	ID, FSM, Queue, Step string
	Parent               *string
	Status, WaitsFor     string
}

// InstanceStatuses returns the statement that reads what instances are filtered by.
func (s *Store) InstanceStatuses(ids []string, now Now, found func(InstanceStatus)) sqldb.Stmt {
	stmt := s.byID("InspectStatus", ids, now)
	stmt.Row = func(scan sqldb.Scan) error {
		var v InstanceStatus
		err := scan(&v.ID, &v.FSM, &v.Queue, &v.Step, &v.Parent, &v.Status)
		if err == nil {
			v.Status, v.WaitsFor = placeOf(v.Status)
			found(v)
		}
		return err
	}
	return stmt
}

// byID completes a statement on instances, whose only value is the time, with ids.
func (s *Store) byID(name string, ids []string, now Now) sqldb.Stmt {
	placeholder := "?"
	if s.dialect.Name == sqldb.Postgres {
		placeholder = "?::uuid"
	}
	text := strings.ReplaceAll(s.text(name), "$1", "?") + "\nwhere i.id in (" + placeholdersOf(placeholder, len(ids)) + ")"
	args := []any{at(now)}
	for _, id := range ids {
		args = append(args, id)
	}
	return sqldb.Stmt{SQL: s.complete(text), Args: args}
}

// Wait is what an instance waits for.
type Wait struct {
	// Names are the signals, as JSON, if it waits for one.
	Names    *string
	Deadline *time.Time
	// Pending of Children have not ended, if it waits for those.
	Pending, Children int
}

// WaitOf returns the statement that reads what an instance waits for, if it does.
func (s *Store) WaitOf(id string, found func(Wait)) sqldb.Stmt {
	get := s.stmt("InspectWait", id)
	get.Row = func(scan sqldb.Scan) error {
		var w Wait
		err := scan(&w.Names, &w.Deadline, &w.Pending, &w.Children)
		if err == nil {
			found(w)
		}
		return err
	}
	return get
}
