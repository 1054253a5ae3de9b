//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// stop makes a change, and stops its own process in the open transaction.
func stop(tx *perdure.Tx) error {
	if err := unitWith("frozen", true)(tx); err != nil {
		return err
	}
	fmt.Println("ready")
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-time.After(time.Hour) // the other threads stop a moment later
	return nil
}

// serve runs a processor until the process ends.
func serve(p dispatch.Processor) error {
	d, err := dispatch.NewWaker(p, nil)
	if err != nil {
		return err
	}
	d.Start()
	<-time.After(time.Hour)
	return nil
}

// frozenHooks returns the hooks that both processes serve.
func frozenHooks(eng *perdure.Engine, handler func(context.Context, string) error) (*hook.Hooks, error) {
	hooks, err := hook.New(eng, "frozen", nil)
	if err != nil || handler == nil {
		return hooks, err
	}
	_, err = hook.Define(hooks, "work", handler, nil)
	return hooks, err
}

// stopInOutcome stops in the transaction that records the outcome of a hook.
func stopInOutcome(db enginetest.Database) error {
	eng, err := perdure.Open(context.Background(), db.DSN, withOutbox())
	if err != nil {
		return err
	}
	hooks, err := frozenHooks(eng, func(ctx context.Context, _ string) error { return perdure.CommitWith(ctx, stop) })
	if err != nil {
		return err
	}
	return serve(hooks)
}

// stopInConsumer stops in the transaction that moves the position of a consumer.
func stopInConsumer(db enginetest.Database) error {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, db.DSN, withOutbox())
	if err != nil {
		return err
	}
	consumer, err := eng.Outbox().Register(ctx, "frozen", outbox.Stamp{})
	if err != nil {
		return err
	}
	p, err := consumer.Handle(func(ctx context.Context, _ outbox.Entry) error { return perdure.CommitWith(ctx, stop) }, nil)
	if err != nil {
		return err
	}
	return serve(p)
}

// runs starts a processor in the process of the test.
func runs(t *testing.T, p dispatch.Processor) {
	t.Helper()
	d, err := dispatch.NewWaker(p, nil)
	enginetest.NoError(t, err)
	d.Start()
	t.Cleanup(func() { enginetest.NoError(t, d.Stop(context.Background())) })
}

// writesGoOn commits units of all kinds while a process is stopped.
func writesGoOn(t *testing.T, eng *perdure.Engine) {
	t.Helper()
	begun := time.Now()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := eng.Update(enginetest.Context(t), unitWith(fmt.Sprint("patient", i), i%2 == 0)); err != nil {
				t.Errorf("unit %d: %v", i, err)
			}
		})
	}
	all.Wait()
	t.Logf("eight units were committed within %v", time.Since(begun))
}

// A process that stops in the transaction of an outcome holds up neither writers of the
// outbox nor other work of its queue.
func TestAProcessThatStopsInAnOutcomeStopsNobodyElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		done := make(chan string, 100)
		hooks, err := frozenHooks(eng, func(ctx context.Context, id string) error {
			return perdure.CommitWith(ctx, func(tx *perdure.Tx) error { // runs once: nothing conflicts
				done <- id
				return unitWith("outcome "+id, false)(tx)
			})
		})
		enginetest.NoError(t, err)
		trigger := func(id string) {
			t.Helper()
			update(t, eng, func(tx *perdure.Tx) error {
				_, err := hooks.TriggerIn(tx, "work", id, nil)
				return err
			})
		}
		trigger("of the process that stops")
		child := startFrozen(t, "outcome", db)
		awaitStop(t, child)
		writesGoOn(t, eng)
		runs(t, hooks)
		for i := range 5 {
			trigger(fmt.Sprint("other", i))
			<-done
		}
		stillStopped(t, child)
		sound(t, eng)
	})
}

// A process that stops in the transaction of a consumer holds up neither writers of the
// outbox nor other consumers.
func TestAProcessThatStopsInAConsumerStopsNobodyElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		createUser(t, eng, "ann")
		child := startFrozen(t, "consumer", db)
		awaitStop(t, child)
		writesGoOn(t, eng)
		other, err := eng.Outbox().Register(enginetest.Context(t), "other", outbox.Stamp{})
		enginetest.NoError(t, err)
		handled := make(chan outbox.Stamp, 100)
		p, err := other.Handle(func(_ context.Context, e outbox.Entry) error { handled <- e.Stamp; return nil }, nil)
		enginetest.NoError(t, err)
		runs(t, p)
		for i := range 9 { // one user and eight units
			if stamp := <-handled; stamp.Counter() != uint64(i+1) {
				t.Errorf("entry %d has the stamp %s", i, stamp)
			}
		}
		update(t, eng, func(tx *perdure.Tx) error { return tx.Emit("late", "", nil) })
		<-handled
		stillStopped(t, child)
		sound(t, eng)
	})
}
