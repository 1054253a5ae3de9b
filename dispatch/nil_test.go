package dispatch_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// Nothing that registers work panics because something is missing.
func TestRegisteringNothingIsAnError(t *testing.T) {
	t.Parallel()
	k, err := newKinds(enginetest.Context(t), "sqlite::memory:", longLease, func(string) {})
	noError(t, err)
	t.Cleanup(func() { noError(t, k.eng.Close()) })
	work := func(context.Context, int) error { return nil }
	for what, register := range map[string]func() error{
		"fsm":           func() error { return k.machines.Register(nil) },
		"fsm pointer":   func() error { return k.machines.Register((*fsm.Definition[int])(nil)) },
		"fsm step":      func() error { return k.machines.Register(fsm.Define[int]("x", 1, nil, fsm.Step[int]("a", nil, nil))) },
		"hooks":         func() error { _, err := hook.Define(nil, "x", work, nil); return err },
		"hook handler":  func() error { _, err := hook.Define[int](k.hooks, "x", nil, nil); return err },
		"alarms":        func() error { _, err := alarm.Handle(nil, "x", work, nil); return err },
		"alarm handler": func() error { _, err := alarm.Handle[int](k.alarms, "x", nil, nil); return err },
		"actor machine": func() error { return k.actors.Register("x", nil, nil) },
		"task sender": func() error {
			_, err := task.NewWorker(k.eng, &task.Options{Senders: map[string]task.Sender{"x": nil}})
			return err
		},
		"group":        func() error { _, err := dispatch.Group(nil, nil); return err },
		"group of one": func() error { _, err := dispatch.Group(nil); return err },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("panic: %v", v)
				}
			}()
			enginetest.As[*fault.Invalid](t, register())
		})
	}
}
