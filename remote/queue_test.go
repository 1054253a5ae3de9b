package remote_test

import (
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func (Conformance) QueueOfAStoredDefinitionIsServed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, done)
	d := definition(e, "only")
	d.Queue = "of-its-own"
	stored, err := f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	e.know(t, stored.Generated)
	if end := f.ended(t, f.start(t, "order", "null")); end.Status != fsm.Done || end.Queue != "of-its-own" {
		t.Errorf("ended %s in queue %s (%s)", end.Status, end.Queue, end.Error)
	}
}
