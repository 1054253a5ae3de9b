package engine_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Text that is no statement must not bring the process down.
func TestExecOfNothingDoesNotPanic(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng := db.Open(t, nil)
		for _, text := range []string{"", " \n"} {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Exec(text)
				return err
			})
			enginetest.As[*fault.Invalid](t, err)
			err = eng.View(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Query(text)
				return err
			})
			enginetest.As[*fault.Invalid](t, err)
		}
		_ = eng.Update(t.Context(), func(tx *perdure.Tx) error { // an error on some databases, nothing on others
			_, err := tx.Exec("-- a comment")
			return err
		})
	})
}
