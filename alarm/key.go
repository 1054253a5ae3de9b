package alarm

import (
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

const (
	// maxID is the longest id of an alarm that can be scheduled, in bytes.
	maxID = 256
	// maxStoredID is the longest that can be looked for: dead letters of ticks have
	// the time of the tick in their id.
	maxStoredID = 320
	// reserved is how the types begin that are Perdure's own.
	reserved = "perdure."
)

// Key names an alarm: an id among those of an actor, or of nobody.
type Key struct {
	// ActorType and ActorID name the actor. Both are empty if the alarm belongs
	// to nobody. The actor need not exist.
	ActorType, ActorID string
	// ID names the alarm there, in up to 256 bytes.
	ID string
}

// ID returns the key of an alarm that belongs to nobody.
func ID(id string) Key { return Key{ID: id} }

// Of returns the key of an alarm of an actor.
func Of(actorType, actorID, id string) Key {
	return Key{ActorType: actorType, ActorID: actorID, ID: id}
}

// String returns the key for people: "reminder", or "order/42/reminder".
func (k Key) String() string { return k.stored().String() }

func (k Key) stored() store.AlarmKey {
	return store.AlarmKey{ActorType: k.ActorType, ActorID: k.ActorID, ID: k.ID}
}

func keyOf(k store.AlarmKey) Key { return Key{ActorType: k.ActorType, ActorID: k.ActorID, ID: k.ID} }

// check refuses what cannot name an alarm.
func (k Key) check(longest int) error {
	if k.ID == "" {
		return fault.Invalidf("alarm id", "is empty")
	}
	if err := edge.Text("alarm id", k.ID, longest); err != nil {
		return err
	}
	return checkActor(k.ActorType, k.ActorID)
}

// checkActor refuses half an actor, and names that no actor can have.
func checkActor(actorType, id string) error {
	if actorType == "" && id == "" {
		return nil
	}
	if err := edge.Name("actor type", actorType); err != nil {
		return err
	}
	return edge.Key("actor id", id)
}

// checkType refuses what cannot be a type of users.
func checkType(name string) error {
	if err := edge.Name("alarm type", name); err != nil {
		return err
	}
	if strings.HasPrefix(name, reserved) {
		return fault.Invalidf("alarm type", "begins with %q, which is reserved", reserved)
	}
	return nil
}
