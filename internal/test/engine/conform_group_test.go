package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// InAGroupOnlyTheCulpritsFail: many units share transactions, and each gets the
// outcome that it would have had alone.
func (Conformance) InAGroupOnlyTheCulpritsFail(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "taken")
	const n = 120
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = eng.Update(context.Background(), func(tx *perdure.Tx) error { return mixedUnit(tx, i) })
		})
	}
	all.Wait()
	committed := 0
	for i, err := range errs {
		switch i % 6 {
		case 1:
			enginetest.As[*fault.Duplicate](t, err)
		case 2:
			if c := enginetest.As[*fault.Conflict](t, err); c.Version != 77 {
				t.Errorf("unit %d got the conflict of another: %+v", i, c)
			}
		case 3:
			if m := enginetest.As[*fault.NotFound](t, err); m.ID != fmt.Sprintf("missing%d", i) {
				t.Errorf("unit %d got the error of another: %+v", i, m)
			}
		default:
			enginetest.NoError(t, err)
			committed++
		}
	}
	if got := db.Rows(t, "blog", "users"); got != int64(committed)+1 {
		t.Errorf("there are %d rows, want %d", got, committed+1)
	}
	if got := db.Counter(t); got != int64(committed)+1 {
		t.Errorf("the counter is at %d, want %d", got, committed+1)
	}
	sound(t, eng)
}

func mixedUnit(tx *perdure.Tx, i int) error {
	name := fmt.Sprintf("user%d", i)
	_, _ = tx.Create(users, schema.Values{"id": name, "name": name})
	switch i % 6 {
	case 1:
		_, err := tx.Create(users, schema.Values{"name": "name of taken"})
		return err
	case 2:
		return tx.Check(users, "taken", 77)
	case 3:
		return tx.Update(users, fmt.Sprintf("missing%d", i), schema.Values{"points": 1})
	}
	return nil
}

func (Conformance) WithoutOutboxGroupsWorkTheSame(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{blog}})
	createUser(t, eng, "taken")
	var duplicates atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			err := eng.Update(context.Background(), func(tx *perdure.Tx) error {
				_, err := tx.Create(users, schema.Values{"name": fmt.Sprintf("pair %d", i/2)})
				return err
			})
			var duplicate *fault.Duplicate
			if errors.As(err, &duplicate) {
				duplicates.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if duplicates.Load() != 32 {
		t.Errorf("%d of 32 pairs had a loser", duplicates.Load())
	}
	if n := db.Rows(t, "blog", "users"); n != 33 {
		t.Errorf("there are %d rows, want 33", n)
	}
	if n := db.Counter(t); n != 0 {
		t.Errorf("the counter of the unused outbox is at %d", n)
	}
}

func (Conformance) CloseLetsQueuedUnitsFinish(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	var ok, closed atomic.Int64
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			err := eng.Update(context.Background(), func(tx *perdure.Tx) error {
				_, err := tx.Create(users, schema.Values{"name": fmt.Sprint(i)})
				return err
			})
			switch {
			case err == nil:
				ok.Add(1)
			case errors.Is(err, fault.ErrClosed):
				closed.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	enginetest.Eventually(t, "some units commit", func() bool { return ok.Load() > 3 })
	enginetest.NoError(t, eng.Close())
	all.Wait()
	if ok.Load()+closed.Load() != 100 || db.Rows(t, "blog", "users") != ok.Load() {
		t.Errorf("%d committed, %d refused, %d rows", ok.Load(), closed.Load(), db.Rows(t, "blog", "users"))
	}
}
