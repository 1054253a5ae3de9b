package alarm

import (
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

const (
	// maxID is the maximum length of the id of a scheduled alarm, in bytes.
	maxID = 256
	// maxStoredID is the maximum length of the id of a stored alarm, in bytes. It is
	// longer than maxID because the id of the dead letter of a tick contains the time of
	// the tick.
	maxStoredID = 320
	// reserved is the prefix of Perdure's own types.
	reserved = "perdure."
)

// Key identifies an alarm: its owner, if any, and its id.
type Key struct {
	// ActorType and ActorID identify the actor that owns the alarm. Both are empty if the
	// alarm is unowned. The actor need not exist.
	ActorType, ActorID string
	// ID identifies the alarm among the alarms of its owner. It has at most 256 bytes.
	ID string
}

// ID returns the key of an unowned alarm.
func ID(id string) Key { return Key{ID: id} }

// Of returns the key of an alarm of an actor.
func Of(actorType, actorID, id string) Key {
	return Key{ActorType: actorType, ActorID: actorID, ID: id}
}

// String returns the key as text for display: "reminder", or "order/42/reminder".
func (k Key) String() string { return k.stored().String() }

func (k Key) stored() store.AlarmKey {
	return store.AlarmKey{ActorType: k.ActorType, ActorID: k.ActorID, ID: k.ID}
}

func keyOf(k store.AlarmKey) Key { return Key{ActorType: k.ActorType, ActorID: k.ActorID, ID: k.ID} }

// check returns an error if the key is not valid.
func (k Key) check(longest int) error {
	if k.ID == "" {
		return fault.Invalidf("alarm id", "must not be empty")
	}
	if err := edge.Text("alarm id", k.ID, longest); err != nil {
		return err
	}
	return checkActor(k.ActorType, k.ActorID)
}

// checkActor returns an error if only one of type and id is set, or if no actor can have
// them.
func checkActor(actorType, id string) error {
	if actorType == "" && id == "" {
		return nil
	}
	if err := edge.Name("actor type", actorType); err != nil {
		return err
	}
	return edge.Key("actor id", id)
}

// checkType returns an error if users cannot schedule alarms of a type with this name.
func checkType(name string) error {
	if err := edge.Name("alarm type", name); err != nil {
		return err
	}
	if strings.HasPrefix(name, reserved) {
		return fault.Invalidf("alarm type", "must not start with %q, which is reserved", reserved)
	}
	return nil
}
