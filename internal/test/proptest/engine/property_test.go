package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// TestRandomUnitsDoWhatAModelDoes: the same errors, the same rows, an outbox
// that Verify finds sound, and equal tables after its replay.
func TestRandomUnitsDoWhatAModelDoes(t *testing.T) {
	t.Parallel()
	t.Run(enginetest.SQLite, func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			if err := obey(t, enginetest.New(t, enginetest.SQLite).DSN, unitsGen().Draw(rt, "units")); err != nil {
				rt.Fatal(err)
			}
		})
	})
	onServers(t, func(t *testing.T, db enginetest.Database) {
		for i := range 10 {
			units := unitsGen().Example(i)
			if err := obey(t, enginetest.New(t, db.Name).DSN, units); err != nil {
				t.Fatalf("%v\nunits: %+v", err, units)
			}
		}
	})
}

// obey runs the units on a database and returns how it differs from the model.
func obey(t *testing.T, dsn string, units []unit) error {
	t.Helper()
	ctx := context.Background()
	options := withOutbox()
	options.MaxAttempts = 2 // a unit that conflicts does so for ever
	eng, err := perdure.Open(ctx, dsn, options)
	if err != nil {
		return err
	}
	defer eng.Close()
	state := model{}
	for i, u := range units {
		next, want := state.apply(u)
		if got := eng.Update(ctx, u.run); !sameKind(got, want) {
			return fmt.Errorf("unit %d %+v on %v: the error is %w, want a %T", i, u, state, got, want)
		}
		state = next
	}
	if err := compare(ctx, eng, state); err != nil {
		return err
	}
	report, err := eng.Outbox().Verify(ctx, nil)
	if err != nil || len(report.Problems) > 0 {
		return fmt.Errorf("verify: %w %s", err, strings.Join(report.Problems, "\n"))
	}
	return replay(ctx, eng, enginetest.New(t, enginetest.SQLite).DSN, state)
}

// sameKind compares errors by the type that a caller decides by.
func sameKind(got, want error) bool {
	switch want.(type) { //nolint:errorlint // want is made by the model, bare
	case nil:
		return got == nil
	case *fault.Conflict:
		var e *fault.Conflict
		return errors.As(got, &e)
	case *fault.NotFound:
		var e *fault.NotFound
		return errors.As(got, &e)
	case *fault.Duplicate:
		var e *fault.Duplicate
		return errors.As(got, &e)
	case *fault.Restricted:
		var e *fault.Restricted
		return errors.As(got, &e)
	}
	return errors.Is(got, want)
}

// run records the unit's operations.
func (u unit) run(tx *perdure.Tx) error {
	for i, o := range u.Ops {
		if err := o.record(tx); err != nil {
			return err
		}
		if i == u.ReadAfter {
			if _, err := tx.Find(users, nil); err != nil {
				return err
			}
		}
	}
	if u.Fails {
		// Only what the database refuses is met before.
		if _, err := tx.Find(users, nil); err != nil {
			return err
		}
		return errMine
	}
	return nil
}

func (o op) record(tx *perdure.Tx) error {
	table, values := users, schema.Values{"name": o.Name}
	if o.Row[0] == 'p' {
		table, values = posts, schema.Values{"body": o.Name, "author": o.Other}
	}
	switch o.Kind {
	case "create":
		values["id"] = o.Row
		_, err := tx.Create(table, values)
		return err
	case "createLike":
		return o.createLike(tx)
	case "check":
		return tx.Check(table, o.Row, o.Version)
	}
	row := schema.NewRow(table, 0, o.Row, o.Version, nil, nil)
	switch {
	case o.Kind == "update" && o.Checked:
		return tx.UpdateRow(row, values)
	case o.Kind == "update":
		return tx.Update(table, o.Row, values)
	case o.Checked:
		return tx.DeleteRow(row)
	}
	return tx.Delete(table, o.Row)
}

// createLike creates a post with the author of another, by reference.
func (o op) createLike(tx *perdure.Tx) error {
	like, err := tx.Get(posts, o.Other)
	var missing *fault.NotFound
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tx.Create(posts, schema.Values{"id": o.Row, "author": like.Ref("author"), "body": o.Name})
	return err
}

// compare returns how the tables differ from the model.
func compare(ctx context.Context, eng *perdure.Engine, want model) error {
	got := model{}
	err := eng.View(ctx, func(tx *perdure.Tx) error {
		names := map[int64]string{}
		rows, err := tx.Find(users, nil)
		if err != nil {
			return err
		}
		for _, row := range rows {
			names[row.Internal()] = row.ID
			got[row.ID] = modelRow{Name: row.String("name"), Version: row.Version}
		}
		rows, err = tx.Find(posts, nil)
		for _, row := range rows {
			got[row.ID] = modelRow{Name: row.String("body"), Author: names[row.Ref("author").Internal()], Version: row.Version}
		}
		return err
	})
	if err == nil && got.String() != want.String() {
		err = fmt.Errorf("the tables are %v, want %v", got, want)
	}
	return err
}

// replay applies the outbox to an empty database, which must then be equal.
func replay(ctx context.Context, eng *perdure.Engine, dsn string, want model) error {
	mirror, err := perdure.Open(ctx, dsn, withOutbox())
	if err != nil {
		return err
	}
	defer mirror.Close()
	entries, err := eng.Outbox().List(ctx, outbox.Stamp{}, outbox.MaxLimit)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if entry.Stamp != outbox.NewStamp(0, uint64(i)+1, 0) {
			return fmt.Errorf("entry %d has the stamp %s", i, entry.Stamp)
		}
		if err := mirror.Replay(ctx, entry); err != nil {
			return err
		}
	}
	return compare(ctx, mirror, want)
}
