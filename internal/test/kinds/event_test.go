package kinds

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// An event that is emitted with an outcome commits once, with the outcome.
func TestAnEventCommitsWithTheOutcome(t *testing.T) {
	adds(t, func(t *testing.T, f *fixture) {
		f.eng = f.db.Open(t, &perdure.Options{Clock: f.clock, Outbox: true})
		p := f.start(subject{run: ok, add: func(tx *perdure.Tx) error {
			if err := insert(tx); err != nil {
				return err
			}
			return tx.Emit("paid", "o1", map[string]int{"amount": 5})
		}})
		runAll(t, f.clock, p)
		f.wantRows(1)
		entries, err := f.eng.Outbox().List(enginetest.Context(t), outbox.Stamp{}, 0)
		enginetest.NoError(t, err)
		if len(entries) != 1 || len(entries[0].Payload.Events) != 1 || entries[0].Payload.Events[0].Key != "o1" {
			t.Errorf("the entries are %+v", entries)
		}
	})
}
