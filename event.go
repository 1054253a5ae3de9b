package perdure

import (
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

// Emit records an event of the application in the outbox entry of the unit, next to the
// mutations of described tables. Use it for changes of your own tables, and for facts that
// are no change of a row.
//
// topic names what happened, as "order.placed": 1 to 128 bytes of printable characters.
// key names the thing that the event is about: up to 512 bytes, or empty. payload is
// anything that marshals to JSON, up to outbox.MaxEvent bytes.
//
// The event commits exactly if the unit commits, and readers of the outbox see it in the
// order of commits. Within an entry, events and mutations have the order in which they were
// recorded: see outbox.Payload.All. Emit changes no table and locks no row.
//
// If the engine has no outbox, the unit fails with a *fault.Invalid: an event that no
// consumer can read would be lost.
func (tx *Tx) Emit(topic, key string, payload any) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if !tx.eng.options.Outbox {
		return tx.fail(fault.Invalidf("event", "must be emitted by an engine with an outbox: set Options.Outbox"))
	}
	event, err := outbox.NewEvent(topic, key, payload)
	if err != nil {
		return tx.fail(err)
	}
	if err := tx.room(1); err != nil {
		return err
	}
	tx.unit.Emit(event)
	return nil
}
