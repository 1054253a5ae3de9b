package outbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

func register(t testing.TB, eng *perdure.Engine, name string, from outbox.Stamp) *outbox.Consumer {
	t.Helper()
	c, err := eng.Outbox().Register(enginetest.Context(t), name, from)
	enginetest.NoError(t, err)
	return c
}

func position(t testing.TB, c *outbox.Consumer) outbox.Stamp {
	t.Helper()
	p, err := c.Position(enginetest.Context(t))
	enginetest.NoError(t, err)
	return p
}

func (Conformance) RegisteringAgainKeepsThePosition(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", at(1))
	if c.Name() != "mirror" || position(t, c) != at(1) {
		t.Errorf("%s is at %s", c.Name(), position(t, c))
	}
	again := register(t, db.Open(t, options()), "mirror", at(3))
	if position(t, again) != at(1) {
		t.Errorf("registered again it is at %s", position(t, again))
	}
	register(t, eng, "archive", outbox.Stamp{})
	all, err := eng.Outbox().Consumers(t.Context())
	enginetest.NoError(t, err)
	if len(all) != 2 || all[0].Name != "archive" || all[1].Name != "mirror" || all[1].Position != at(1) || all[1].Created.IsZero() {
		t.Errorf("the consumers are %+v", all)
	}
	_, err = eng.Outbox().Register(t.Context(), "late", at(9))
	enginetest.As[*outbox.DivergedError](t, err)
}

func (Conformance) AcknowledgingOnlyMovesForward(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", outbox.Stamp{})
	for _, step := range []struct{ ack, want outbox.Stamp }{{at(2), at(2)}, {at(1), at(2)}, {at(2), at(2)}, {at(3), at(3)}, {outbox.Stamp{}, at(3)}} {
		enginetest.NoError(t, c.Ack(t.Context(), step.ack))
		if got := position(t, c); got != step.want {
			t.Errorf("after acknowledging %s it is at %s, want %s", step.ack, got, step.want)
		}
	}
	enginetest.NoError(t, c.Reset(t.Context(), at(1)))
	if got := position(t, c); got != at(1) {
		t.Errorf("after the reset it is at %s", got)
	}
	enginetest.As[*outbox.DivergedError](t, c.Reset(t.Context(), at(4)))
}

// AStampThatWasNeverGivenOutCannotBeAcknowledged: the consumer would skip what
// will get it, and retention would remove it unread.
func (Conformance) AStampThatWasNeverGivenOutCannotBeAcknowledged(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a")
	c := register(t, eng, "mirror", outbox.Stamp{})
	enginetest.As[*outbox.DivergedError](t, c.Ack(t.Context(), at(2)))
	enginetest.As[*outbox.DivergedError](t, c.Ack(t.Context(), outbox.NewStamp(1, 1, 0)))
	if got := position(t, c); !got.IsZero() {
		t.Errorf("it is at %s", got)
	}
	enginetest.NoError(t, c.Ack(t.Context(), at(1).At(3))) // a mutation's stamp will do
}

func (Conformance) AForgottenConsumerIsGone(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a")
	c := register(t, eng, "mirror", outbox.Stamp{})
	enginetest.NoError(t, eng.Outbox().DeleteConsumer(t.Context(), "mirror"))
	enginetest.As[*fault.NotFound](t, eng.Outbox().DeleteConsumer(t.Context(), "mirror"))
	enginetest.As[*fault.NotFound](t, c.Ack(t.Context(), at(1)))
	enginetest.As[*fault.NotFound](t, c.Reset(t.Context(), at(1)))
	_, err := c.Position(t.Context())
	enginetest.As[*fault.NotFound](t, err)
	enginetest.As[*fault.NotFound](t, c.Consume(t.Context(), fast, nil))
}

func (Conformance) ConsumeResumesAfterWhatWasHandled(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c", "d", "e")
	c := register(t, eng, "mirror", outbox.Stamp{})
	broken := errors.New("broken")
	var handled []string
	err := c.Consume(t.Context(), &outbox.TailOptions{Batch: 4}, func(_ context.Context, e outbox.Entry) error {
		id := e.Payload.Mutations[0].ExternalID
		if id == "c" {
			return broken
		}
		handled = append(handled, id)
		return nil
	})
	enginetest.Is(t, err, broken)
	if position(t, c) != at(2) {
		t.Errorf("after the failure it is at %s, want what was handled", position(t, c))
	}
	ctx, cancel := context.WithCancel(t.Context())
	other := register(t, db.Open(t, options()), "mirror", outbox.Stamp{}) // a new process
	err = other.Consume(ctx, &outbox.TailOptions{Batch: 2}, func(_ context.Context, e outbox.Entry) error {
		handled = append(handled, e.Payload.Mutations[0].ExternalID)
		if len(handled) == 5 {
			cancel()
		}
		return nil
	})
	enginetest.Is(t, err, context.Canceled)
	if !slices.Equal(handled, []string{"a", "b", "c", "d", "e"}) || position(t, c) != at(5) {
		t.Errorf("handled were %v, and it is at %s", handled, position(t, c))
	}
}

func (Conformance) ConsumeEndsWithTheEngine(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	c := register(t, eng, "mirror", outbox.Stamp{})
	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.Consume(context.Background(), nil, func(context.Context, outbox.Entry) error { close(started); return nil })
	}()
	create(t, eng, "a")
	<-started
	enginetest.Eventually(t, "it is acknowledged", func() bool { return position(t, c) == at(1) })
	enginetest.NoError(t, eng.Close())
	enginetest.NoError(t, <-done)
}

// aged opens an engine with a clock and three entries, an hour apart each.
func aged(t *testing.T, db enginetest.Database) (*perdure.Engine, *movable) {
	t.Helper()
	clock := newClock()
	o := options()
	o.Clock = clock
	eng := db.Open(t, o)
	for _, id := range []string{"a", "b", "c"} {
		create(t, eng, id)
		clock.advance(time.Hour)
	}
	return eng, clock
}

func purge(t testing.TB, eng *perdure.Engine, age time.Duration, want int) {
	t.Helper()
	n, err := eng.Outbox().Purge(enginetest.Context(t), age)
	enginetest.NoError(t, err)
	if n != want {
		t.Errorf("%d entries older than %v were removed, want %d", n, age, want)
	}
}

func (Conformance) PurgeRemovesWhatIsOldEnough(t *testing.T, db enginetest.Database) {
	eng, clock := aged(t, db)
	purge(t, eng, 24*time.Hour, 0)
	purge(t, eng, 3*time.Hour, 0) // exactly three hours is not older
	purge(t, eng, 2*time.Hour+time.Minute, 1)
	if got := ids(list(t, eng, at(1))); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("left are %v", got)
	}
	for _, cursor := range []outbox.Stamp{{}, at(1).At(0)} {
		_, err := eng.Outbox().List(t.Context(), cursor, 0)
		if cursor.IsZero() {
			if gap := enginetest.As[*outbox.GapError](t, err); gap.Cursor != cursor || gap.PurgedThrough != at(1) {
				t.Errorf("the gap is %+v", gap)
			}
			continue
		}
		enginetest.NoError(t, err)
	}
	clock.advance(time.Hour)
	purge(t, eng, 0, 2)
	purge(t, eng, 0, 0)
	status, err := eng.Outbox().Status(t.Context())
	enginetest.NoError(t, err)
	if status.PurgedThrough != at(3) || status.Last != at(3) {
		t.Errorf("the status is %+v", status)
	}
	create(t, eng, "d") // the numbers go on
	if entries := list(t, eng, at(3)); len(entries) != 1 || entries[0].Stamp != at(4) {
		t.Errorf("after all was removed: %+v", entries)
	}
	_, err = eng.Outbox().Register(t.Context(), "late", at(2))
	enginetest.As[*outbox.GapError](t, err)
	enginetest.As[*outbox.GapError](t, register(t, eng, "fresh", at(4)).Reset(t.Context(), at(1)))
}

func (Conformance) PurgeNeverPassesTheSlowestConsumer(t *testing.T, db enginetest.Database) {
	eng, clock := aged(t, db)
	slow, quick := register(t, eng, "slow", outbox.Stamp{}), register(t, eng, "quick", outbox.Stamp{})
	enginetest.NoError(t, quick.Ack(t.Context(), at(3)))
	clock.advance(time.Hour)
	purge(t, eng, 0, 0)
	enginetest.NoError(t, slow.Ack(t.Context(), at(1)))
	purge(t, eng, 0, 1)
	purge(t, eng, 0, 0)
	if got := ids(list(t, eng, at(1))); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("left are %v", got)
	}
	enginetest.NoError(t, eng.Outbox().DeleteConsumer(t.Context(), "slow"))
	purge(t, eng, 0, 2)
}

func (Conformance) PurgeTakesManyBatches(t *testing.T, db enginetest.Database) {
	eng, clock := aged(t, db)
	insert := "insert into " + db.Table("perdure", "outbox") + " (versionstamp, unit_id, payload, created_at) select "
	switch db.Name { // copies of the last entry, with the numbers that follow
	case enginetest.Postgres:
		insert += "decode(lpad(to_hex(3 + n), 20, '0') || '0000', 'hex'), 'u' || n, payload, created_at from perdure.outbox, generate_series(1, 2500) n where unit_id = (select max(unit_id) from perdure.outbox)"
	case enginetest.MySQL:
		insert += "unhex(concat(lpad(hex(3 + seq), 20, '0'), '0000')), concat('u', seq), payload, created_at from perdure_outbox, seq_1_to_2500 where unit_id = (select max(unit_id) from perdure_outbox)"
	default:
		insert = "with recursive n (n) as (select 1 union all select n + 1 from n where n < 2500) " + insert +
			"unhex(printf('%020x', 3 + n) || '0000'), 'u' || n, payload, created_at from perdure_outbox, n where unit_id = (select max(unit_id) from perdure_outbox)"
	}
	db.Exec(t, insert)
	db.Exec(t, "update "+db.Table("perdure", "outbox_clock")+" set counter = 2503")
	clock.advance(time.Hour)
	purge(t, eng, 0, 2503)
	if n := db.Rows(t, "perdure", "outbox"); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func (Conformance) RetentionPrunesByItself(t *testing.T, db enginetest.Database) {
	_, clock := aged(t, db)
	o := options()
	o.Clock, o.OutboxRetention = clock, 90*time.Minute
	eng := db.Open(t, o)
	enginetest.Eventually(t, "old entries are removed", func() bool {
		status, err := eng.Outbox().Status(t.Context())
		enginetest.NoError(t, err)
		return status.PurgedThrough == at(2)
	})
	if got := ids(list(t, eng, at(2))); !slices.Equal(got, []string{"c"}) {
		t.Errorf("left are %v", got)
	}
}
