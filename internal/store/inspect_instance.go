package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Place is a table in which instances of a status are found.
type Place string

// The places that list instances by id, newest first.
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

// InstancesIn returns the statement that scans the instances of a place, starting with the
// newest instance that is older than before.
func (s *Store) InstancesIn(p Place, before string, limit int, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt(string(p), before, limit), found)
}

// InstancesOf is InstancesIn for all instances of one definition.
func (s *Store) InstancesOf(fsm, before string, limit int, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("InspectInstancesOf", fsm, before, limit), found)
}

// UniqueInstances returns the statement that finds the instances that have a unique
// key.
func (s *Store) UniqueInstances(key string, limit int, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("InspectUnique", key, limit), found)
}

// QueuedInstance is an instance that waits in the queue of its partition.
type QueuedInstance struct {
	Key string
	Seq int64
	ID  string
}

// QueuedInstances returns the statement that scans the queues of partitions.
func (s *Store) QueuedInstances(after QueuedInstance, limit int, found func(QueuedInstance)) sqldb.Stmt {
	return read(s.stmt("InspectQueued", after.Key, after.Seq, limit), found, func(q *QueuedInstance) []any { return []any{&q.Key, &q.Seq, &q.ID} })
}

// ReadyGroup is a queue, a suspect flag and a priority. Instances of one group are ordered by
// due time.
type ReadyGroup struct {
	Queue    string
	Suspect  bool
	Priority int
}

// NextReadyGroup returns the statement that finds the next group of instances, if there is one.
func (s *Store) NextReadyGroup(after ReadyGroup, found func(ReadyGroup)) sqldb.Stmt {
	return read(s.stmt("InspectReadyGroup", after.Queue, after.Suspect, after.Priority), found, func(g *ReadyGroup) []any { return []any{&g.Queue, &g.Suspect, &g.Priority} })
}

// DueInstance is an instance that may run at its due time.
type DueInstance struct {
	Due time.Time
	ID  string
}

// DueInstances returns the statement that scans a group, ordered by due time, from after an
// instance until a time.
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

// SignalsOf returns the statement that reads the inbox of an instance, in order of arrival.
func (s *Store) SignalsOf(id string, after int64, limit int, found func(SignalView)) sqldb.Stmt {
	return read(s.stmt("InspectSignals", id, after, limit), func(v SignalView) {
		v.Payload, _ = s.open(signalPayload, v.Payload, id, v.Name) // a payload that cannot be decrypted is shown as it is stored
		found(v)
	}, func(v *SignalView) []any { return []any{&v.Seq, &v.Name, &v.Payload, &v.Created, &v.Received} })
}

// InstanceStatus holds the fields by which a list of instances is filtered.
type InstanceStatus struct {
	ID, FSM, Queue, Step string
	Parent               *string
	Status, WaitsFor     string
}

// InstanceStatuses returns the statement that reads the fields by which instances are filtered.
func (s *Store) InstanceStatuses(ids []string, now Now, found func(InstanceStatus)) sqldb.Stmt {
	return read(s.byID("InspectStatus", ids, now), func(v InstanceStatus) {
		v.Status, v.WaitsFor = placeOf(v.Status)
		v.Queue = QueueOf(v.Queue)
		found(v)
	}, func(v *InstanceStatus) []any { return []any{&v.ID, &v.FSM, &v.Queue, &v.Step, &v.Parent, &v.Status} })
}

// byID adds ids to a statement on instances whose only value is the time.
func (s *Store) byID(name string, ids []string, now Now) sqldb.Stmt {
	text := strings.ReplaceAll(s.text(name), "$1", "?") + "\nwhere i.id in (" + placeholdersOf("?"+s.dialect.CastUUID(), len(ids)) + ")"
	args := []any{at(now)}
	for _, id := range ids {
		args = append(args, id)
	}
	return sqldb.Stmt{SQL: s.complete(text), Args: args}
}

// Wait describes the wait of an instance.
type Wait struct {
	// Names are the awaited signals, as JSON, if the instance waits for signals.
	Names    *string
	Deadline *time.Time
	// Pending is the number of Children that have not finished, if the instance waits for
	// children.
	Pending, Children int
}

// WaitOf returns the statement that reads the wait of an instance, if it waits.
func (s *Store) WaitOf(id string, found func(Wait)) sqldb.Stmt {
	return read(s.stmt("InspectWait", id), found, func(w *Wait) []any { return []any{&w.Names, &w.Deadline, &w.Pending, &w.Children} })
}
