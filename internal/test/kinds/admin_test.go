package kinds

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// admin is the form of the administration of every kind: K is its id, F its filter and R
// its record.
type admin[K, F, R any] interface {
	List(ctx context.Context, f F, cursor string, limit int) ([]R, string, error)
	Get(ctx context.Context, id K) (R, error)
	Retry(ctx context.Context, id K) error
	RetryIn(tx *perdure.Tx, id K) error
	Cancel(ctx context.Context, id K) error
	CancelIn(tx *perdure.Tx, id K) error
	Delete(ctx context.Context, id K) error
	DeleteIn(tx *perdure.Tx, id K) error
}

// attempted is the form for kinds whose work has attempts and dead letters.
type attempted[K any] interface {
	Attempts(ctx context.Context, id K) ([]retry.Attempt, error)
	PurgeDead(ctx context.Context, age time.Duration) (int64, error)
}

// kept is the form for kinds that keep work that succeeded.
type kept interface {
	Purge(ctx context.Context, age time.Duration) (int64, error)
}

var (
	_, _, _, _ attempted[string]    = (*hook.Admin)(nil), (*hook.Hooks)(nil), (*task.Admin)(nil), (*fsm.Admin)(nil)
	_          attempted[alarm.Key] = (*alarm.Admin)(nil)
	_, _, _    kept                 = (*hook.Admin)(nil), (*task.Admin)(nil), (*fsm.Admin)(nil)
)

// operations are the operations of an admin on one id.
type operations struct {
	get, retry, cancel, remove  func(context.Context) error
	retryIn, cancelIn, removeIn func(*perdure.Tx) error
	attempts                    func(context.Context) ([]retry.Attempt, error) // nil: the kind has none
	list                        func(context.Context) (int, error)
	purgeDead                   func(context.Context, time.Duration) (int64, error)
}

// administered is a kind with its administration.
type administered struct {
	kind kind
	// of returns the operations on the only work item of the database. on returns those on
	// an id.
	of func(t *testing.T, eng *perdure.Engine) operations
	on func(t *testing.T, eng *perdure.Engine, id string) operations
	// malformed are ids that no work item can have, beside the texts that are malformed
	// for every kind.
	malformed []string
	name      string
}

func administer[K, F, R any](k kind, name string, make func(*perdure.Engine) (admin[K, F, R], error), idOf func(R) K, id func(string) K, malformed ...string) administered {
	open := func(t *testing.T, eng *perdure.Engine) admin[K, F, R] {
		a, err := make(eng)
		enginetest.NoError(t, err)
		return a
	}
	list := func(ctx context.Context, a admin[K, F, R]) ([]R, error) {
		var all F
		found, next, err := a.List(ctx, all, "", 0)
		if next != "" {
			err = errors.New("there is another page")
		}
		return found, err
	}
	bind := func(a admin[K, F, R], id K) operations {
		o := operations{
			get:    func(ctx context.Context) error { _, err := a.Get(ctx, id); return err },
			retry:  func(ctx context.Context) error { return a.Retry(ctx, id) },
			cancel: func(ctx context.Context) error { return a.Cancel(ctx, id) },
			remove: func(ctx context.Context) error { return a.Delete(ctx, id) },

			retryIn:  func(tx *perdure.Tx) error { return a.RetryIn(tx, id) },
			cancelIn: func(tx *perdure.Tx) error { return a.CancelIn(tx, id) },
			removeIn: func(tx *perdure.Tx) error { return a.DeleteIn(tx, id) },

			list: func(ctx context.Context) (int, error) { found, err := list(ctx, a); return len(found), err },
		}
		if tried, ok := a.(attempted[K]); ok {
			o.attempts = func(ctx context.Context) ([]retry.Attempt, error) { return tried.Attempts(ctx, id) }
			o.purgeDead = tried.PurgeDead
		}
		return o
	}
	return administered{
		kind: k, name: name, malformed: malformed,
		of: func(t *testing.T, eng *perdure.Engine) operations {
			a := open(t, eng)
			found, err := list(t.Context(), a)
			enginetest.NoError(t, err)
			if len(found) != 1 {
				t.Fatalf("there are %d work items, want 1", len(found))
			}
			return bind(a, idOf(found[0]))
		},
		on: func(t *testing.T, eng *perdure.Engine, text string) operations { return bind(open(t, eng), id(text)) },
	}
}

func text(id string) string { return id }

// admins are the kinds that operators manage.
var admins = map[string]administered{
	"hook": administer(kinds["hook"], "hook", func(eng *perdure.Engine) (admin[string, hook.Filter, hook.Record], error) { return hook.NewAdmin(eng) },
		func(r hook.Record) string { return r.ID }, text),
	"alarm": administer(kinds["alarm"], "alarm", func(eng *perdure.Engine) (admin[alarm.Key, alarm.Filter, alarm.Record], error) {
		return alarm.NewAdmin(eng)
	},
		func(r alarm.Record) alarm.Key { return r.Key }, alarm.ID),
	"instance": administer(kinds["step"], "instance", func(eng *perdure.Engine) (admin[string, fsm.Filter, fsm.Instance], error) { return fsm.NewAdmin(eng) },
		func(r fsm.Instance) string { return r.ID }, text, "missing", strings.ToUpper(takenID)),
	"task": administer(sender, "task", func(eng *perdure.Engine) (admin[string, task.Filter, task.Record], error) { return task.NewAdmin(eng) },
		func(r task.Record) string { return r.ID }, text, "missing", "-1", "01", "99999999999999999999"),
	"actor": administer(kinds["effect"], "actor", func(eng *perdure.Engine) (admin[actor.Ref, actor.Filter, actor.Record], error) {
		return actor.NewAdmin(eng)
	},
		func(r actor.Record) actor.Ref { return r.Ref }, func(id string) actor.Ref { return actor.Ref{Type: "cart", ID: id} }),
}

// eachAdmin runs a test for each kind and database.
func eachAdmin(t *testing.T, test func(t *testing.T, db enginetest.Database, a administered), except ...string) {
	t.Parallel()
	for name, a := range admins {
		if len(except) > 0 && except[0] == name {
			continue
		}
		for _, database := range a.kind.on {
			t.Run(name+"/"+database, func(t *testing.T) {
				t.Parallel()
				test(t, enginetest.New(t, database), a)
			})
		}
	}
}

func TestAnIDThatNoWorkHasIsNotFound(t *testing.T) {
	eachAdmin(t, func(t *testing.T, db enginetest.Database, a administered) {
		eng := db.Open(t, nil)
		missing := []string{takenID, "1234567", "", "a\x00", "\xff", strings.Repeat("x", 1000)}
		for _, id := range append(missing, a.malformed...) {
			o := a.on(t, eng, id)
			for verb, do := range map[string]func() error{
				"get":       func() error { return o.get(t.Context()) },
				"retry":     func() error { return o.retry(t.Context()) },
				"retry in":  func() error { return eng.Update(t.Context(), o.retryIn) },
				"cancel":    func() error { return o.cancel(t.Context()) },
				"cancel in": func() error { return eng.Update(t.Context(), o.cancelIn) },
				"delete":    func() error { return o.remove(t.Context()) },
				"delete in": func() error { return eng.Update(t.Context(), o.removeIn) },
				"attempts": func() error {
					if o.attempts == nil {
						return &fault.NotFound{Kind: a.name}
					}
					_, err := o.attempts(t.Context())
					return err
				},
			} {
				var missing *fault.NotFound
				if err := do(); !errors.As(err, &missing) || missing.Kind != a.name {
					t.Errorf("%s %q: %v, want a NotFound of kind %s", verb, id, err, a.name)
				}
			}
		}
	})
}

// wantState checks that an operation was refused because of the status of the work.
func wantState(t *testing.T, verb string, err error, finished bool) {
	t.Helper()
	var state *perdure.StateError
	if !errors.As(err, &state) || state.Finished != finished {
		t.Errorf("%s: %v, want a StateError with Finished %v", verb, err, finished)
	}
}

func TestADeadLetterIsListedRetriedAndDeleted(t *testing.T) {
	eachAdmin(t, func(t *testing.T, db enginetest.Database, a administered) {
		runs := 0
		eng := db.Open(t, &perdure.Options{Clock: perduretest.NewClock(start)})
		p := a.kind.start(subject{t: t, eng: eng, policy: retry.None(), run: func(context.Context, int) error {
			runs++
			return retry.After(0, errors.New("declined")) // also a sender has failed then
		}})
		process := func() {
			t.Helper()
			_, err := p.Process(t.Context())
			enginetest.NoError(t, err)
		}
		process()
		o := a.of(t, eng)
		attempts, err := o.attempts(t.Context())
		if err != nil || len(attempts) != 1 || attempts[0].Outcome != retry.Failed {
			t.Errorf("attempts: %+v, %v", attempts, err)
		}
		wantState(t, "cancel", o.cancel(t.Context()), true)
		wantState(t, "cancel in", eng.Update(t.Context(), o.cancelIn), true)
		enginetest.NoError(t, o.retry(t.Context()))
		process()
		enginetest.NoError(t, eng.Update(t.Context(), o.retryIn))
		process()
		if runs != 3 {
			t.Errorf("it ran %d times, want 3", runs)
		}
		if n, err := o.purgeDead(t.Context(), 24*time.Hour); n != 0 || err != nil {
			t.Errorf("young dead letters were purged: %d, %v", n, err)
		}
		enginetest.As[*fault.Invalid](t, second(o.purgeDead(t.Context(), -1)))
		enginetest.NoError(t, o.remove(t.Context()))
		enginetest.As[*fault.NotFound](t, o.get(t.Context()))
		if n, err := o.list(t.Context()); n != 0 || err != nil {
			t.Errorf("the list has %d records, %v", n, err)
		}
	}, "actor")
}

func second(_ int64, err error) error { return err }

func TestRunningWorkIsCancelledButNotRetriedOrDeleted(t *testing.T) {
	eachAdmin(t, func(t *testing.T, db enginetest.Database, a administered) {
		eng := db.Open(t, nil)
		begun := make(chan struct{})
		p := a.kind.start(subject{t: t, eng: eng, policy: retry.None(), run: func(ctx context.Context, _ int) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}})
		processed := make(chan error, 1)
		go func() {
			_, err := p.Process(context.Background())
			processed <- err
		}()
		<-begun
		o := a.of(t, eng)
		wantState(t, "retry", o.retry(t.Context()), false)
		wantState(t, "retry in", eng.Update(t.Context(), o.retryIn), false)
		wantState(t, "delete", o.remove(t.Context()), false)
		wantState(t, "delete in", eng.Update(t.Context(), o.removeIn), false)
		enginetest.NoError(t, o.cancel(t.Context()))
		enginetest.NoError(t, <-processed)
	}, "actor")
}

func TestAnActorIsCancelledAndDeleted(t *testing.T) {
	t.Parallel()
	for _, database := range everywhere {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			eng := enginetest.New(t, database).Open(t, nil)
			actors, err := actor.New(eng, nil)
			enginetest.NoError(t, err)
			_, err = actors.StoreStatechart(t.Context(), "cart", []byte(`{"initial": "open", "states": {"open": {}}}`), nil)
			enginetest.NoError(t, err)
			ref := actor.Ref{Type: "cart", ID: "1"}
			_, err = actors.Spawn(t.Context(), ref, actor.Caller{Kind: actor.System}, nil, nil)
			enginetest.NoError(t, err)
			o := admins["actor"].of(t, eng)
			wantState(t, "retry", o.retry(t.Context()), false)
			wantState(t, "retry in", eng.Update(t.Context(), o.retryIn), false)
			enginetest.NoError(t, o.cancel(t.Context()))
			wantState(t, "cancel", o.cancel(t.Context()), true)
			wantState(t, "cancel in", eng.Update(t.Context(), o.cancelIn), true)
			enginetest.NoError(t, eng.Update(t.Context(), o.removeIn))
			enginetest.As[*fault.NotFound](t, o.get(t.Context()))
		})
	}
}
