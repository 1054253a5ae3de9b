//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// pauses are the places in a function of the application at which its process stops. The
// function has changed the user ann.
var pauses = map[string]func(tx *perdure.Tx) error{
	"function": func(tx *perdure.Tx) error { return addPoint("ann", true)(tx) },
	"statement": func(tx *perdure.Tx) error {
		if err := addPoint("ann", false)(tx); err != nil {
			return err
		}
		stx, err := tx.SQL()
		if err != nil {
			return err
		}
		_, err = stx.ExecContext(tx.Context(), "select 1")
		return err
	},
	"rows": func(tx *perdure.Tx) error {
		if err := addPoint("ann", false)(tx); err != nil {
			return err
		}
		stx, err := tx.SQL()
		if err != nil {
			return err
		}
		rows, err := stx.QueryContext(tx.Context(), "select 1 union all select 2")
		if err != nil {
			return err
		}
		rows.Next()
		return rows.Err()
	},
}

// stopInFunction stops its own process in a function of the application that has changed a
// row, on an engine with its own connections or on a pool of the application.
func stopInFunction(place string, pool bool) func(db enginetest.Database) error {
	return func(db enginetest.Database) error {
		eng, err := openOn(db, pool)
		if err != nil {
			return err
		}
		return eng.Update(context.Background(), func(tx *perdure.Tx) error {
			if err := pauses[place](tx); err != nil {
				return err
			}
			fmt.Println("ready")
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				return err
			}
			<-time.After(time.Hour) // the other threads stop a moment later
			return nil
		})
	}
}

func openOn(db enginetest.Database, pool bool) (*perdure.Engine, error) {
	if !pool {
		return perdure.Open(context.Background(), db.DSN, withOutbox())
	}
	raw, err := db.Raw()
	if err != nil {
		return nil, err
	}
	return perdure.OpenSQL(context.Background(), raw, withOutbox())
}

func init() {
	for place := range pauses {
		frozen[place] = stopInFunction(place, false)
		frozen[place+" on a pool"] = stopInFunction(place, true)
	}
}

// A process that stops in a function of the application, with an open transaction, holds the
// rows that it has changed for a bounded time.
func TestAProcessThatStopsInAFunctionHoldsItsRowsForABoundedTime(t *testing.T) {
	t.Parallel()
	for place := range pauses {
		for _, role := range []string{place, place + " on a pool"} {
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				onServers(t, func(t *testing.T, db enginetest.Database) {
					eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: true, Timeout: 5 * sqldb.ClientSilence})
					createUser(t, eng, "ann")
					child := startFrozen(t, role, db)
					awaitStop(t, child)
					begun := time.Now()
					for _, open := range []bool{false, true} {
						update(t, eng, addPoint("ann", open))
						t.Logf("open=%v: committed %v after the process had stopped", open, time.Since(begun))
					}
					stillStopped(t, child)
					sound(t, eng)
				})
			})
		}
	}
}

// A function of the application may pause for longer than a server waits for a stopped
// process.
func (n Native) AFunctionMayPause(t *testing.T, db enginetest.Database) {
	if db.Dialect().OneWriter() {
		return // nothing ends its transactions
	}
	eng := n.start(t, db)
	pause := func() { <-time.After(sqldb.ClientSilence + sqldb.ClientSilence/2) }
	update(t, eng, func(tx *perdure.Tx) error {
		if err := addPoint("ann", true)(tx); err != nil {
			return err
		}
		pause()
		if err := note(db, own(t, tx), 1); err != nil {
			return err
		}
		pause()
		return note(db, own(t, tx), 2)
	})
	if notes := db.Int(t, "select count(*) from notes"); notes != 2 {
		t.Errorf("there are %d notes", notes)
	}
	sound(t, eng)
}
