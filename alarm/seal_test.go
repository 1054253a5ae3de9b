package alarm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

const (
	keyA = "a:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	keyB = "b:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="
)

// sealed is a process that fires alarms with some keys.
func sealed(t *testing.T, db enginetest.Database, clock *perduretest.Clock, keys string, fired *[]string, errs *[]error) *fixture {
	t.Helper()
	ring, err := perdure.ParseKeys(keys)
	enginetest.NoError(t, err)
	f := &fixture{db: db, clock: clock, eng: db.Open(t, &perdure.Options{Clock: clock, Keys: ring})}
	f.alarms = newAlarms(t, f.eng, &alarm.Options{OnError: func(err error) { *errs = append(*errs, err) }, Notify: "https://example.org/"})
	_, err = alarm.Handle(f.alarms, "a", func(_ context.Context, payload string) error {
		*fired = append(*fired, payload)
		return errors.New("no")
	}, nil)
	enginetest.NoError(t, err)
	return f
}

// Where there are keys, no payload can be read in the table, neither that of the
// alarm nor what is left of it; another process fires it if it has the key.
func (Conformance) PayloadsAreSealed(t *testing.T, db enginetest.Database) {
	clock := perduretest.NewClock(noon)
	var fired []string
	var errs []error
	owner := sealed(t, db, clock, keyA, &fired, &errs)
	key := alarm.Of("order", `"1", `, "x")
	o := &alarm.ScheduleOptions{Every: time.Hour, At: noon, Retry: retry.None()}
	enginetest.NoError(t, owner.alarms.Schedule(enginetest.Context(t), key, "a", "planted", o))
	other := sealed(t, db, clock, keyB, &fired, &errs)
	_, err := other.alarms.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "fired without the key", len(fired), 0)
	other.is(t, key, alarm.Ready)
	equal(t, "reported", len(errs), 1)
	clock.Advance(time.Minute)
	owner.process(t, 1) // becomes a dead letter, with a notification
	equal(t, "fired", strings.Join(fired, " "), "planted")
	owner.rows(t, 3)
	table := db.Table("perdure", "alarms")
	hidden := func() {
		t.Helper()
		if n := db.Int(t, "select count(*) from "+table+" where concat(payload, '') like '%planted%'"); n != 0 {
			t.Fatalf("%d payloads can be read in the table", n)
		}
	}
	hidden()
	equal(t, "payload", string(owner.get(t, key).Payload), `"planted"`)
	equal(t, "payload of the dead letter", string(owner.get(t, alarm.Of("order", `"1", `, "x@2026-03-01T12:00:00Z")).Payload), `"planted"`)

	both := sealed(t, db, clock, keyB+","+keyA, &fired, &errs)
	_, err = rotate.Run(enginetest.Context(t), both.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	hidden()
	equal(t, "payload after the rotation", string(other.get(t, key).Payload), `"planted"`)
	clock.Advance(time.Hour)
	other.process(t, 1)
}
