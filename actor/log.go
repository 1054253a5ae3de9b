package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// EntryKind is the kind of a log entry.
type EntryKind string

// The kinds of entries.
const (
	// EntryStart is the start of the actor; the event is its input.
	EntryStart EntryKind = "start"
	// EntryEvent is an event that a caller sent.
	EntryEvent EntryKind = "event"
	// EntryTimer is a timer that was due. EntryFire is a timer that an operator fired.
	EntryTimer EntryKind = "timer"
	EntryFire  EntryKind = "fire"
	// EntryMove is a timer that an operator moved to another time. EntrySkip is a timer that an
	// operator removed. The event is the timer.
	EntryMove EntryKind = "move"
	EntrySkip EntryKind = "skip"
	// EntryDone and EntryError are results of invocations; the event is the result.
	EntryDone  EntryKind = "done"
	EntryError EntryKind = "error"
	// EntryStop is the stop of the actor.
	EntryStop EntryKind = "stop"
	// EntryResume is the end of a quarantine by Resume.
	EntryResume EntryKind = "resume"
	// EntryMigrate is the migration to another version of the machine. EntryImport is the
	// import from actor-kit storage. EntryFork is the fork of another actor.
	EntryMigrate EntryKind = "migrate"
	EntryImport  EntryKind = "import"
	EntryFork    EntryKind = "fork"
	// EntryLimit is a transition that was stopped because the machine exceeded a limit. The
	// actor failed. The event has the kind and the event of the transition, the limit and the
	// error.
	EntryLimit EntryKind = "limit"
	// EntryReset is a Reset to an earlier step; the event has the step.
	EntryReset EntryKind = "reset"
)

// entryKind returns the kind of a stored entry. Earlier versions stored a resume as
// "release".
func entryKind(stored string) EntryKind {
	if stored == "release" {
		return EntryResume
	}
	return EntryKind(stored)
}

// Entry is one transition in the log of an actor.
type Entry struct {
	// Sequence is the number of the transition.
	Sequence int64           `json:"sequence"`
	Kind     EntryKind       `json:"kind"`
	Event    json.RawMessage `json:"event,omitempty"`
	// Caller is the caller that caused the transition. It is nil for timers and invocations.
	Caller *Caller `json:"caller,omitempty"`
	// Path and Generation identify the receiving actor in the tree.
	Path       string `json:"path,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Key is the idempotency key of an event, or the id of a timer.
	Key string `json:"key,omitempty"`
	// Output contains the emitted events and log messages of the transition.
	Output Output `json:"output"`
	// Value is the state value after the transition. Checksum is the checksum of the snapshot.
	Value    json.RawMessage `json:"value,omitempty"`
	Checksum string          `json:"checksum"`
	// At is the machine's time. Recorded is the commit time.
	At       time.Time `json:"at"`
	Recorded time.Time `json:"recorded"`
}

// Log returns the entries of an actor's log after a sequence number, oldest first. It returns
// at most limit entries; 0 means DefaultLimit.
func (a *Actors) Log(ctx context.Context, ref Ref, after int64, limit int) ([]Entry, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	if err := ref.find(); err != nil {
		return nil, err
	}
	var entries []Entry
	err = a.read(ctx, a.rt.Store.ListActorLog(ref.stored(), after, math.MaxInt64, limit, func(e store.ActorEntry) { entries = append(entries, entryOf(&e)) }))
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return entries, nil
}

func entryOf(s *store.ActorEntry) Entry {
	e := Entry{
		Sequence: s.Sequence, Kind: entryKind(s.Kind), Event: raw(s.Event), Path: value(s.Path), Key: value(s.Key),
		Value: raw(s.Value), Checksum: s.Checksum, At: s.At.UTC(), Recorded: s.Recorded.UTC(),
	}
	if s.CallerKind != nil {
		e.Caller = &Caller{Kind: CallerKind(*s.CallerKind), ID: value(s.CallerID)}
	}
	if s.Generation != nil {
		e.Generation = *s.Generation
	}
	if s.Said != nil {
		_ = json.Unmarshal([]byte(*s.Said), &e.Output) // the stored JSON is valid
	}
	return e
}
