package actor

// EntryKind says what an entry of the log records.
type EntryKind string

// The kinds of entries.
const (
	// EntryStart is the start of the actor; the event is its input.
	EntryStart EntryKind = "start"
	// EntryEvent is an event that somebody sent.
	EntryEvent EntryKind = "event"
	// EntryTimer is a delay that was due.
	EntryTimer EntryKind = "timer"
	// EntryDone and EntryError are results of tasks; the event is the result.
	EntryDone  EntryKind = "done"
	EntryError EntryKind = "error"
	// EntryStop is the stop of the actor.
	EntryStop EntryKind = "stop"
)
