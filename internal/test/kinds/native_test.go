package kinds

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// Rows that a handler writes through the application's own transaction, as a *sql.Tx or a
// pgx.Tx, commit with the outcome of the work, and only with it.
func TestRowsOfTheApplicationsTransactionCommitWithTheOutcome(t *testing.T) {
	const query = "insert into written (n) values (2)"
	forms := map[string]func(tx *perdure.Tx) error{
		"SQL": func(tx *perdure.Tx) error {
			own, err := tx.SQL()
			if err != nil {
				return err
			}
			_, err = own.ExecContext(tx.Context(), query)
			return err
		},
		"Pgx": func(tx *perdure.Tx) error {
			own, err := tx.Pgx()
			if err != nil {
				return err
			}
			_, err = own.Exec(tx.Context(), query)
			return err
		},
	}
	adds(t, func(t *testing.T, f *fixture) {
		form := forms["SQL"]
		if f.db.Name == enginetest.Postgres && !ofSQL(f.eng) {
			form = forms["Pgx"]
		}
		fails := 0
		p := f.start(subject{run: func(_ context.Context, attempt int) error {
			if attempt == 1 {
				return retry.After(time.Minute, errors.New("declined"))
			}
			return nil
		}, add: func(tx *perdure.Tx) error {
			if err := form(tx); err != nil {
				return err
			}
			if fails++; fails == 1 { // the row is rolled back with the outcome
				return retry.After(time.Minute, errors.New("no receipt"))
			}
			return nil
		}})
		runAll(t, f.clock, p)
		f.wantRows(1)
	})
}

// ofSQL reports whether the engine uses a pool of database/sql.
func ofSQL(eng *perdure.Engine) (sql bool) {
	err := eng.View(context.Background(), func(tx *perdure.Tx) error {
		_, err := tx.Pgx()
		return err
	})
	return err != nil
}
