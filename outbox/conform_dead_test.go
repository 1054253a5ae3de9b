package outbox_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
)

func dead(t testing.TB, c *outbox.Consumer) (all []outbox.DeadLetter) {
	t.Helper()
	all, err := c.DeadLetters(enginetest.Context(t), outbox.Stamp{}, 0)
	enginetest.NoError(t, err)
	return all
}

func (Conformance) AConsumerStopsAtADeadLetter(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	var fixed atomic.Bool
	p := handler(t, c, l.handle(func(_ context.Context, id string) error {
		if id == "b" && !fixed.Load() {
			return retry.Stop(errBroken)
		}
		return nil
	}), nil)
	process(t, p)
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b"})
	if s := status(t, eng); !s.Stopped || s.Dead != 1 || s.Position != at(1) || s.Error != "broken" {
		t.Errorf("at the dead letter: %+v", s)
	}
	next, err := p.NextWakeAt(t.Context())
	enginetest.NoError(t, err)
	if !next.IsZero() {
		t.Errorf("a stopped consumer looks again at %v", next)
	}
	all := dead(t, c)
	if len(all) != 1 || all[0].Stamp != at(2) || all[0].Attempts != 1 || all[0].Status != "failed" || ids([]outbox.Entry{all[0].Entry})[0] != "b" {
		t.Fatalf("the dead letters are %+v", all)
	}
	enginetest.NoError(t, c.RetryDead(t.Context(), at(2)))
	process(t, p)
	if s := status(t, eng); !s.Stopped || s.Dead != 1 {
		t.Errorf("retried in vain: %+v", s)
	}
	fixed.Store(true)
	enginetest.NoError(t, c.RetryDead(t.Context(), at(2)))
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "b", "b", "c"})
	if s := status(t, eng); s.Stopped || s.Dead != 0 || s.Position != at(3) {
		t.Errorf("at the end: %+v", s)
	}
}

func (Conformance) ADeadLetterCanBeSkipped(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	p := handler(t, c, l.handle(func(_ context.Context, id string) error {
		if id == "a" {
			return retry.Stop(errBroken)
		}
		return nil
	}), nil)
	runs(t, p)
	enginetest.Eventually(t, "it stops", func() bool { return status(t, eng).Stopped })
	enginetest.As[*fault.NotFound](t, c.SkipDead(t.Context(), at(2)))
	enginetest.As[*fault.NotFound](t, c.RetryDead(t.Context(), at(2)))
	enginetest.NoError(t, c.SkipDead(t.Context(), at(1)))
	enginetest.Eventually(t, "it continues", func() bool { return position(t, c) == at(2) })
	same(t, "handled", l.got(), []string{"a", "b"})
	if n := len(dead(t, c)); n != 0 {
		t.Errorf("%d dead letters are left", n)
	}
}

func (Conformance) AConsumerMayContinueAfterADeadLetter(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	var fixed atomic.Bool
	p := handler(t, c, l.handle(func(_ context.Context, id string) error {
		if id == "b" && !fixed.Load() {
			return errBroken
		}
		return nil
	}), &outbox.HandlerOptions{ContinueAfterDead: true, Retry: retry.Fixed(2, 0)})
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "b", "c"})
	if s := status(t, eng); s.Stopped || s.Dead != 1 || s.Position != at(3) || s.Error != "" {
		t.Errorf("after the dead letter: %+v", s)
	}
	enginetest.NoError(t, c.Ack(t.Context(), at(3)))
	purge(t, eng, 0, 3) // the dead letter is a copy
	enginetest.NoError(t, c.RetryDead(t.Context(), at(2)))
	process(t, p)
	if all := dead(t, c); len(all) != 1 || all[0].Status != "failed" || all[0].Attempts != 2 || all[0].Error != "broken" {
		t.Errorf("retried in vain: %+v", all)
	}
	fixed.Store(true)
	enginetest.NoError(t, c.RetryDead(t.Context(), at(2)))
	process(t, p)
	same(t, "handled", l.got(), []string{"a", "b", "b", "c", "b", "b", "b"})
	if s := status(t, eng); s.Dead != 0 || s.Position != at(3) || len(dead(t, c)) != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

func (Conformance) AFailedBatchIsNarrowedDownToTheEntry(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c", "d", "e", "f", "g")
	c := register(t, eng, "mirror", outbox.Stamp{})
	var l log
	p, err := c.HandleBatches(func(_ context.Context, entries []outbox.Entry) error {
		l.add(entries...)
		if slices.Contains(ids(entries), "c") {
			return errBroken
		}
		return nil
	}, &outbox.HandlerOptions{Batch: 4, ContinueAfterDead: true, Retry: retry.None()})
	enginetest.NoError(t, err)
	process(t, p)
	same(t, "batches", l.got(), []string{"a+b+c+d", "a", "b+c", "b", "c+d", "c", "d", "e+f", "g"})
	if all := dead(t, c); len(all) != 1 || all[0].Stamp != at(3) {
		t.Errorf("the dead letters are %+v", all)
	}
	if position(t, c) != at(7) {
		t.Errorf("it is at %s", position(t, c))
	}
}
