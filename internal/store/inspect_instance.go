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
	return oneColumn(s.stmt(string(p), before, limit), found)
}

// InstancesOf is InstancesIn for all instances of one machine.
func (s *Store) InstancesOf(fsm, before string, limit int, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("InspectInstancesOf", fsm, before, limit), found)
}

// UniqueInstances returns the statement that finds the instances that have a unique
// key.
func (s *Store) UniqueInstances(key string, limit int, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("InspectUnique", key, limit), found)
}

// QueuedInstance is an instance that waits for its turn in a partition.
type QueuedInstance struct {
	Key string
	Seq int64
	ID  string
}

// QueuedInstances returns the statement that walks along the partitions.
func (s *Store) QueuedInstances(after QueuedInstance, limit int, found func(QueuedInstance)) sqldb.Stmt {
	return read(s.stmt("InspectQueued", after.Key, after.Seq, limit), found, func(q *QueuedInstance) []any { return []any{&q.Key, &q.Seq, &q.ID} })
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
	return read(s.stmt("InspectReadyGroup", after.Queue, after.Suspect, after.Priority), found, func(g *ReadyGroup) []any { return []any{&g.Queue, &g.Suspect, &g.Priority} })
}

// DueInstance is an instance that may run when it is due.
type DueInstance struct {
	Due time.Time
	ID  string
}

// DueInstances returns the statement that walks along a group in the order of due
// times, from after one to a time.
func (s *Store) DueInstances(g ReadyGroup, after DueInstance, until time.Time, limit int, found func(DueInstance)) sqldb.Stmt {
	return read(s.stmt("InspectReady", g.Queue, g.Suspect, g.Priority, after.Due, after.ID, until, limit), func(d DueInstance) {
		d.Due = d.Due.UTC()
		found(d)
	}, func(d *DueInstance) []any { return []any{&d.Due, &d.ID} })
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
	return read(s.stmt("InspectSignals", id, after, limit), func(v SignalView) {
		v.Payload, _ = s.open(signalPayload, v.Payload, id, v.Name) // what has no key here is shown as it is stored
		found(v)
	}, func(v *SignalView) []any { return []any{&v.Seq, &v.Name, &v.Payload, &v.Created, &v.Received} })
}

// InstanceStatus is what a list of instances is filtered by.
type InstanceStatus struct {
	ID, FSM, Queue, Step string
	Parent               *string
	Status, WaitsFor     string
}

// InstanceStatuses returns the statement that reads what instances are filtered by.
func (s *Store) InstanceStatuses(ids []string, now Now, found func(InstanceStatus)) sqldb.Stmt {
	return read(s.byID("InspectStatus", ids, now), func(v InstanceStatus) {
		v.Status, v.WaitsFor = placeOf(v.Status)
		found(v)
	}, func(v *InstanceStatus) []any { return []any{&v.ID, &v.FSM, &v.Queue, &v.Step, &v.Parent, &v.Status} })
}

// byID completes a statement on instances, whose only value is the time, with ids.
func (s *Store) byID(name string, ids []string, now Now) sqldb.Stmt {
	text := strings.ReplaceAll(s.text(name), "$1", "?") + "\nwhere i.id in (" + placeholdersOf("?"+s.dialect.CastUUID(), len(ids)) + ")"
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
	return read(s.stmt("InspectWait", id), found, func(w *Wait) []any { return []any{&w.Names, &w.Deadline, &w.Pending, &w.Children} })
}
