package rotate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// diary keeps what it is told, and tells itself after an hour.
var diary = []byte(`{
	"id": "diary", "initial": "open", "context": {"public": {"note": "planted-context"}},
	"states": {
		"open": {"after": {"3600000": "closed"}, "on": {"WRITE": {"actions": [
			{"type": "xstate.assign", "params": {"assignment": {"public": {"note": {"$expr": "event.note"}}}}}
		]}}},
		"closed": {}
	}
}`)

var (
	ref    = actor.Ref{Type: "diary", ID: "1"}
	author = actor.Caller{Kind: actor.Service, ID: "ada"}
)

// study is a process that runs actors.
func study(t *testing.T, db enginetest.Database, clock *perduretest.Clock, keys string) (*perdure.Engine, *actor.Actors, *[]error) {
	t.Helper()
	ring, err := perdure.ParseKeys(keys)
	enginetest.NoError(t, err)
	eng := db.Open(t, &perdure.Options{Clock: clock, Keys: ring})
	errs := &[]error{}
	actors, err := actor.New(eng, &actor.Options{OnError: func(err error) { *errs = append(*errs, err) }})
	enginetest.NoError(t, err)
	enginetest.NoError(t, actors.Register("diary", diary, nil))
	return eng, actors, errs
}

// notes are what the database must not show.
var notes = []string{"planted-context", "planted-input", "planted-note"}

func write(t *testing.T, actors *actor.Actors) {
	t.Helper()
	_, err := actors.Spawn(t.Context(), ref, author, map[string]string{"title": "planted-input"}, nil)
	enginetest.NoError(t, err)
	_, err = actors.Send(t.Context(), ref, author, statechart.Event{Type: "WRITE", Data: map[string]any{"note": "planted-note"}}, nil)
	enginetest.NoError(t, err)
}

func (Conformance) ActorsAreEncryptedToo(t *testing.T, db enginetest.Database) {
	clock := newClock()
	_, actors, _ := study(t, db, clock, keyA)
	write(t, actors)
	for _, note := range notes {
		if strings.Contains(stored(t, db), note) {
			t.Errorf("the database shows %s", note)
		}
	}
	// Another process, with nothing in its cache.
	_, others, _ := study(t, db, clock, keyB+","+keyA)
	view, err := others.Snapshot(t.Context(), ref, author)
	if err != nil || view.Value != "open" {
		t.Fatalf("%+v, %v", view, err)
	}
	log, err := others.Log(t.Context(), ref, 0, 10)
	if err != nil || len(log) != 2 {
		t.Errorf("%+v, %v", log, err)
	}
}

func (Conformance) ActorsThatCannotBeOpenedAreLeftAlone(t *testing.T, db enginetest.Database) {
	clock := newClock()
	begin := clock.Now()
	_, actors, _ := study(t, db, clock, keyA)
	write(t, actors)
	clock.Advance(2 * time.Hour) // its delay is overdue
	_, stranger, errs := study(t, db, clock, keyB)
	sealed := (*seal.SealedError)(nil)
	_, err := stranger.Send(t.Context(), ref, author, statechart.Event{Type: "WRITE", Data: map[string]any{"note": "x"}}, nil)
	if !errors.As(err, &sealed) || sealed.Key != "a" {
		t.Errorf("send: %v", err)
	}
	if _, err := stranger.Snapshot(t.Context(), ref, author); !errors.As(err, &sealed) {
		t.Errorf("look: %v", err)
	}
	for range 3 {
		if n, err := stranger.Process(t.Context()); n != 0 || err != nil {
			t.Errorf("fire: %d, %v", n, err)
		}
	}
	if len(*errs) != 1 || !errors.As((*errs)[0], &sealed) {
		t.Errorf("told of %v, want it once", *errs)
	}
	// The delay is as it was, and the owner fires it first.
	receipt, err := actors.Send(t.Context(), ref, author, statechart.Event{Type: "WRITE", Data: map[string]any{"note": "x"}}, nil)
	if err != nil || receipt.View.Value != "closed" {
		t.Errorf("%+v, %v", receipt, err)
	}
	log, err := actors.Log(t.Context(), ref, 2, 10)
	if err != nil || len(log) == 0 || log[0].Kind != actor.EntryTimer || !log[0].At.Equal(begin.Add(time.Hour)) {
		t.Errorf("the delay fired as %+v, %v", log, err)
	}
}

// A process without the key skips the actor: its delay stays due for others, and does
// not wake this process.
func (Conformance) ActorsWithoutAKeyHereAreSkipped(t *testing.T, db enginetest.Database) {
	clock := newClock()
	_, actors, _ := study(t, db, clock, keyA)
	write(t, actors)
	clock.Advance(time.Hour)
	_, stranger, errs := study(t, db, clock, keyB)
	for range 3 {
		if n, err := stranger.Process(t.Context()); n != 0 || err != nil {
			t.Errorf("fire: %d, %v", n, err)
		}
	}
	if next, err := stranger.NextWakeAt(t.Context()); err != nil || !next.IsZero() {
		t.Errorf("it looks again at %v, %v", next, err)
	}
	if len(*errs) != 1 || !strings.Contains((*errs)[0].Error(), `key "a"`) {
		t.Errorf("told of %v, want the key once", *errs)
	}
	if n, err := actors.Process(t.Context()); n != 1 || err != nil {
		t.Errorf("the owner fired %d, %v", n, err)
	}
}

// A process that has another key under the same id cannot know who is right.
func (Conformance) ActorsThatCannotBeOpenedAreLookedAtEverLessOften(t *testing.T, db enginetest.Database) {
	clock := newClock()
	begin := clock.Now()
	_, actors, _ := study(t, db, clock, keyA)
	write(t, actors)
	clock.Advance(time.Hour)
	_, stranger, _ := study(t, db, clock, strings.Replace(keyB, "b:", "a:", 1))
	var waits []string
	for range 9 {
		if _, err := stranger.Process(t.Context()); err != nil {
			t.Fatal(err)
		}
		next, err := stranger.NextWakeAt(t.Context())
		enginetest.NoError(t, err)
		waits = append(waits, next.Sub(clock.Now()).String())
		clock.Set(next)
	}
	if got := strings.Join(waits, " "); got != "1s 1s 2s 4s 8s 16s 32s 1m0s 1m0s" {
		t.Errorf("it waited %s", got)
	}
	timers, err := actors.Timers(t.Context(), ref)
	if err != nil || len(timers) != 1 || !timers[0].Due.Equal(begin.Add(time.Hour)) {
		t.Errorf("%+v, %v", timers, err)
	}
	if n, err := actors.Process(t.Context()); n != 1 || err != nil {
		t.Errorf("the owner fired %d, %v", n, err)
	}
}

func (Conformance) KeysOfActorsAreReplaced(t *testing.T, db enginetest.Database) {
	clock := newClock()
	_, actors, _ := study(t, db, clock, keyA)
	write(t, actors)
	eng, _, _ := study(t, db, clock, keyB+","+keyA)
	done, err := rotate.Run(t.Context(), eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	resealed := map[string]int64{}
	for _, p := range done {
		resealed[p.Column] += p.Resealed
	}
	for _, column := range []string{"actors.input", "snapshots.snapshot", "actor_log.event", "alarms.payload"} {
		if resealed[column] == 0 {
			t.Errorf("nothing of %s: %+v", column, done)
		}
	}
	_, only, errs := study(t, db, clock, keyB)
	clock.Advance(2 * time.Hour)
	if _, err := only.Process(t.Context()); err != nil || len(*errs) != 0 {
		t.Errorf("%v, %v", err, *errs)
	}
	if view, err := only.Snapshot(t.Context(), ref, author); err != nil || view.Value != "closed" {
		t.Errorf("%+v, %v", view, err)
	}
	again, err := rotate.Pending(t.Context(), eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	for _, p := range again {
		if p.Resealed != 0 || p.Foreign != 0 {
			t.Errorf("%+v is left", p)
		}
	}
}
