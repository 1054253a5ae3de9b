package actor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// recorded lets another process be about to fire the delays of w1, until so many
// milliseconds after noon.
func (f *fixture) recorded(t testing.TB, until int64) {
	t.Helper()
	timers, err := f.actors.Timers(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	list := ""
	for i, timer := range timers {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("[%q, %q, %q]", w1.Type, w1.ID, timer.ID)
	}
	at, no := fmt.Sprintf("timestamptz '%s' + %d * interval '1 millisecond'", noon.Format("2006-01-02T15:04:05Z07:00"), until), "false"
	switch f.db.Name {
	case enginetest.SQLite:
		at, no = fmt.Sprint(noon.UnixMicro()+1000*until), "0"
	case enginetest.MySQL:
		at = "'" + noon.Add(time.Duration(until)*time.Millisecond).Format("2006-01-02 15:04:05.000") + "'"
	}
	f.db.Exec(t, fmt.Sprintf("insert into %s (token, worker, suspect, claimed_at, expires_at, timers) values ('t%d', 'other', %s, %s, %s, '[%s]')",
		f.db.Table("perdure", "firing"), until, no, at, at, list))
}

// crashes ends the test unless the first delay of w1 has crashed so often.
func (f *fixture) crashes(t testing.TB, want int) {
	t.Helper()
	timers, err := f.actors.Timers(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "crashes", timers[0].Crashes, want)
}

// DelaysThatAnotherProcessFiresAreLeftToIt and taken over, as a crash of theirs, when
// its record expires.
func (Conformance) DelaysThatAnotherProcessFiresAreLeftToIt(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.recorded(t, 5000)
	f.pass(t, 2000)
	f.is(t, w1, "a")
	f.crashes(t, 0)
	f.pass(t, 4000)
	f.is(t, w1, "fired")
	equal(t, "records", db.Rows(t, "perdure", "firing"), 0)
}

// ADelayThatHasCrashedIsNotFiredForACaller, whose process would crash uncounted.
func (Conformance) ADelayThatHasCrashedIsNotFiredForACaller(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	db.Exec(t, "update "+db.Table("perdure", "timers")+" set crashes = 1")
	f.clock.Advance(time.Minute)
	f.send(t, w1, "INNER")
	f.is(t, w1, "a")
	f.process(t)
	f.is(t, w1, "fired")
}

// AQuarantinedDelayLeavesItsActorAlone: events are handled, and a retry fires it.
func (Conformance) AQuarantinedDelayLeavesItsActorAlone(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	db.Exec(t, "update "+db.Table("perdure", "timers")+" set status = 'quarantined', crashes = 5, batch_limit = -2, error = 'it kills'")
	f.pass(t, 2000)
	f.is(t, w1, "a")
	f.send(t, w1, "INNER")
	timers, err := f.actors.Timers(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "error", timers[0].Error, "it kills")
	quarantined, err := f.actors.QuarantinedTimer(enginetest.Context(t), w1, timers[0].ID)
	enginetest.NoError(t, err)
	equal(t, "quarantined", quarantined, true)
	enginetest.NoError(t, f.actors.RetryTimer(enginetest.Context(t), w1, actor.Caller{Kind: actor.Client, ID: "op"}, timers[0].ID))
	f.crashes(t, 0)
	f.pass(t, 1)
	f.is(t, w1, "fired")
}
