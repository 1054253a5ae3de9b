package store

import (
	"strings"

	"github.com/google/uuid"
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
