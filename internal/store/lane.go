package store

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// A lane is the queue of a row in ready, which all kinds of work share. The lane of an instance
// is its queue. The lane of a hook contains the namespace and the name of the hook, and the
// lane of an alarm contains its type. No name contains a tab, so lanes of different kinds never
// collide.

const (
	// laneMark is the prefix of the lanes and lease queues of hooks.
	laneMark = "hook\t"
	// AlarmQueue is the queue of the leases of alarms. It is the prefix of their lanes.
	AlarmQueue = "alarm\t"
)

// An instance can be in a lane of its queue: the queue, the character U+001F, which no name
// contains, and a part. Parts with the prefix ~ are the names that have no room in the slots of
// the process that claimed it, see package core.
const (
	partMark  = "\x1f"
	shareMark = "~"
)

// ShareLane returns the lane of a queue for instances whose names have no room.
func ShareLane(queue string, names ...string) string {
	for _, name := range names {
		if name != "" {
			queue += partMark + shareMark + name
		}
	}
	return queue
}

// QueueOf returns the queue of a lane of instances.
func QueueOf(lane string) string {
	queue, _, _ := strings.Cut(lane, partMark)
	return queue
}

// AlarmLane returns the lane of the alarms of a type.
func AlarmLane(typ string) string { return AlarmQueue + typ }

// HookLane returns the lane of the hooks of a namespace with a name.
func HookLane(namespace, name string) string { return laneMark + namespace + "\t" + name }

// HookQueue returns the queue of the leases of hooks of a namespace.
func HookQueue(namespace string) string { return laneMark + namespace }

// ParseLane returns the kind of work of a lane or of a lease's queue. It returns HookKind with
// the namespace and the name of the hooks (no name for a lease), AlarmKind with the type as the
// name, or InstanceKind with the queue as the name.
func ParseLane(lane string) (kind, namespace, name string) {
	if typ, ok := strings.CutPrefix(lane, AlarmQueue); ok {
		return AlarmKind, "", typ
	}
	rest, ok := strings.CutPrefix(lane, laneMark)
	if !ok {
		return InstanceKind, "", lane
	}
	namespace, name, _ = strings.Cut(rest, "\t")
	return HookKind, namespace, name
}

// SharesOfLane returns the names with which the items of a lane share the slots of a process
// with those of other lanes.
func SharesOfLane(lane string) (names []string) {
	switch kind, _, name := ParseLane(lane); kind {
	case HookKind:
		return []string{"hook:" + name}
	case AlarmKind:
		return []string{"alarm:" + name}
	}
	for _, part := range strings.Split(lane, partMark)[1:] {
		if name, ok := strings.CutPrefix(part, shareMark); ok {
			names = append(names, name)
		}
	}
	return names
}

// maxLanes is the largest number of lanes of a queue that a process looks at.
const maxLanes = 1000

// Spreads reports whether instances can be moved to lanes of their queue.
func (s *Store) Spreads() bool { return s.text("InstanceLanes") != "" }

// Lanes returns the statement that finds the lanes of a queue that have items, and the time
// until the first of them is due.
func (f *Family) Lanes(queue string, now Now, found func(lane string, wait time.Duration)) sqldb.Stmt {
	type row struct {
		lane string
		us   int64
	}
	return read(f.stmt("Lanes", at(now), queue, maxLanes), func(r row) {
		found(r.lane, time.Duration(min(r.us, maxMicroseconds))*time.Microsecond)
	}, func(r *row) []any { return []any{&r.lane, &r.us} })
}

// ClaimLanes is Claim for lanes of the queue.
func (f *Family) ClaimLanes(c Claim, now Now, found func(Claimed)) []sqldb.Stmt {
	separator := ", due as ("
	if !f.s.dialect.ChainsWrites() {
		separator = "\n;\n"
	}
	_, rest, _ := strings.Cut(f.s.text(f.kind+"Claim"), separator)
	text := strings.ReplaceAll(f.s.text(f.kind+"LaneClaim"), "{rest}", rest)
	stmts := f.s.bindAll(text, []any{c.Queue, at(now), c.Limit, c.Token, c.Worker, f.s.dialect.Bool(false), c.Lease.Microseconds(), one(c.Lanes)})
	stmts[len(stmts)-1].Row = f.row(found)
	return stmts
}

// Moved is an item that is moved to a lane.
type Moved struct{ ID, Lane string }

// Move returns the statement that moves claimed items to lanes. Ready then puts them there.
func (f *Family) Move(all []Moved) sqldb.Stmt {
	return f.stmt("Move", tuples{column(all, func(m Moved) string { return m.ID }), column(all, func(m Moved) string { return m.Lane })})
}

// Unshare returns the statement that moves items back to their queue.
func (f *Family) Unshare(ids []string) sqldb.Stmt { return f.stmt("Unshare", one(ids)) }

// hookArgs returns the arguments that find a hook by its public id: the key that its user
// chose, and the id of the row. The id is nil if the public id is not a UUID in the stored
// form.
func hookArgs(public string) []any {
	id, err := uuid.Parse(public)
	if err != nil || id.String() != public {
		return []any{public, nil}
	}
	return []any{public, public}
}

// IsItem reports whether a text can be the id of a row: a UUID in lower case.
func IsItem(id string) bool { return hookArgs(id)[1] != nil }
