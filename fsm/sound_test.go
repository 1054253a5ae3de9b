package fsm_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// sound fails the test for every invariant that is broken.
func sound(t testing.TB, eng *perdure.Engine) {
	t.Helper()
	for _, v := range violations(t, eng) {
		t.Errorf("%s: instance %s %s", v.Rule, v.ID, v.Detail)
	}
}

// violations returns the invariants that are broken.
func violations(t testing.TB, eng *perdure.Engine) (all []store.Violation) {
	t.Helper()
	rt := host.Of(eng)
	tx, err := rt.DB.Begin(enginetest.Context(t), sqldb.Read)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	enginetest.NoError(t, tx.Run(enginetest.Context(t), rt.Store.Invariants(func(v store.Violation) { all = append(all, v) })...))
	return all
}
