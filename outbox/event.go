package outbox

import (
	"encoding/json"
	"iter"
	"strconv"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Event is an event that the application recorded with Tx.Emit, next to the mutations of
// its unit of work. It changes no table.
type Event struct {
	// Topic is the name of what happened, as "order.placed".
	Topic string `json:"topic"`
	// Key names the thing that the event is about. It may be empty.
	Key string `json:"key,omitempty"`
	// Stamp is the stamp of the entry with this event's user version.
	Stamp Stamp `json:"versionstamp"`
	// Payload is a JSON document.
	Payload json.RawMessage `json:"payload"`
}

// MaxEvent is the maximum size of the payload of an event in bytes.
const MaxEvent = edge.DefaultMaxJSON

// NewEvent returns an event without a stamp. topic has 1 to 128 bytes of printable
// characters, without a space at either end. key has at most 512 bytes of text and may be
// empty. payload is anything that marshals to JSON, up to MaxEvent bytes. Otherwise the
// error is a *fault.Invalid.
func NewEvent(topic, key string, payload any) (Event, error) {
	e := Event{Topic: topic, Key: key, Payload: json.RawMessage("null")}
	if err := e.check("event"); err != nil {
		return Event{}, err
	}
	raw, err := edge.Marshal("payload of event "+topic, payload, MaxEvent)
	e.Payload = raw
	return e, err
}

// All returns the mutations and the events in the order in which they were recorded. Of
// each pair, one is nil.
func (p Payload) All() iter.Seq2[*Mutation, *Event] {
	return func(yield func(*Mutation, *Event) bool) {
		mutations, events := p.Mutations, p.Events
		for len(mutations) > 0 || len(events) > 0 {
			var m *Mutation
			var e *Event
			if len(events) == 0 || len(mutations) > 0 && mutations[0].Stamp.Compare(events[0].Stamp) < 0 {
				m, mutations = &mutations[0], mutations[1:]
			} else {
				e, events = &events[0], events[1:]
			}
			if !yield(m, e) {
				return
			}
		}
	}
}

// Len returns the number of mutations and events.
func (p Payload) Len() int { return len(p.Mutations) + len(p.Events) }

func eventPath(i int) string { return "events." + strconv.Itoa(i) }

// check returns an error if the event has a topic or a key that Emit refuses, or no payload.
func (e Event) check(path string) error {
	if err := edge.Name(path+".topic", e.Topic); err != nil {
		return err
	}
	if err := edge.Text(path+".key", e.Key, edge.MaxKey); err != nil {
		return err
	}
	if e.Payload == nil {
		return fault.Invalidf(path+".payload", "is required")
	}
	return nil
}

// events writes the member events, if there are any.
func (e *encoder) events(events []Event) error {
	for i, event := range events {
		if i == 0 {
			e.raw(`,"events":[`)
		} else {
			e.raw(",")
		}
		if err := e.event(i, event); err != nil {
			return err
		}
	}
	if len(events) > 0 {
		e.raw("]")
	}
	return nil
}

// event writes an event. Its payload is embedded unchanged and never tagged.
func (e *encoder) event(i int, event Event) error {
	if err := edge.JSON(eventPath(i)+".payload", event.Payload, len(event.Payload)); err != nil {
		return err
	}
	e.raw(`{"topic":`)
	e.quote(event.Topic)
	if event.Key != "" {
		e.raw(`,"key":`)
		e.quote(event.Key)
	}
	e.stamp(event.Stamp)
	e.raw(`,"payload":`)
	e.buf = append(e.buf, event.Payload...)
	e.raw("}")
	return nil
}

type storedEvent struct {
	Topic        string          `json:"topic"`
	Key          string          `json:"key"`
	Versionstamp string          `json:"versionstamp"`
	Payload      json.RawMessage `json:"payload"`
}

func readEvent(i int, s storedEvent) (Event, error) {
	stamp, err := readStamp(eventPath(i), s.Versionstamp)
	return Event{Topic: s.Topic, Key: s.Key, Stamp: stamp, Payload: s.Payload}, err
}
