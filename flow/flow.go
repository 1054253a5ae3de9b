// Package flow runs durable functions: plain Go functions whose named steps are recorded.
// A function survives crashes of its process. It then runs again from its start, and the
// steps that are recorded return their recorded results.
//
//	var Orders = flow.Define("order", 1, order)
//
//	func order(run *flow.Run, in Order) (Receipt, error) {
//		paid, err := flow.Step(run, "charge", func(ctx context.Context) (Payment, error) {
//			return charge(ctx, flow.Key(ctx), in.Card, in.Total) // one key for all attempts
//		})
//		if err != nil {
//			return Receipt{}, err
//		}
//		flow.Undo(run, "refund", func(ctx context.Context) error { return refund(ctx, paid) })
//		if err := flow.Sleep(run, "grace", 24*time.Hour); err != nil {
//			return Receipt{}, err
//		}
//		return flow.Tx(run, "ship", func(tx *perdure.Tx) (Receipt, error) { return ship(tx, in, paid) })
//	}
//
//	machines, err := fsm.New(eng, nil)
//	err = machines.Register(Orders)
//	started, err := flow.Start(ctx, eng, Orders, Order{…}, nil)
//
// The guarantees: a step that is recorded does not run again. A step may run more than once
// before it is recorded, so its effects must be idempotent; Key returns the same key for all
// attempts. The rows that Tx writes commit exactly once.
//
// The code outside steps runs again after every wait, so it must be deterministic: it takes the
// time, random numbers and results of I/O from steps, Now and Random, and it starts no
// goroutines. Go and Map run branches concurrently.
//
// The instances of functions are instances of package fsm: signals, unique keys, partitions,
// deadlines, schedules, cancellation, retries and retention are the same. It runs on SQLite,
// PostgreSQL, MySQL and MariaDB.
package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/retry"
)

// Func is the code of a function. It returns the result of the instance. After an error the
// compensation runs (see Undo), and the instance fails. Stop and Again return errors with
// another meaning.
type Func[In, Out any] func(run *Run, in In) (Out, error)

// Definition is a durable function: its name, its version and its code. An instance runs to
// completion on the version with which it was started.
type Definition[In, Out any] struct {
	name    string
	version int
	fn      Func[In, Out]
	options fsm.DefinitionOptions[In]
	from    []int
}

// Define returns a definition. Mistakes are reported by Machines.Register and Start.
func Define[In, Out any](name string, version int, fn func(run *Run, in In) (Out, error)) *Definition[In, Out] {
	return &Definition[In, Out]{name: name, version: version, fn: fn, options: fsm.DefinitionOptions[In]{OnCancel: journal.Run}}
}

// Queue returns the definition with the queue of instances that are started without one.
func (d *Definition[In, Out]) Queue(name string) *Definition[In, Out] {
	changed := *d
	changed.options.Queue = name
	return &changed
}

// Retry returns the definition with the retry policy of steps that set none, and of panics of
// the function itself. Instances that were started before keep the policy that the definition had
// then. Default: fsm.DefaultRetry.
func (d *Definition[In, Out]) Retry(p retry.Policy) *Definition[In, Out] {
	changed := *d
	changed.options.Retry = p
	return &changed
}

// Continues returns the definition as one that also runs the instances of an earlier version. Their
// journals are matched by the names of calls only: calls may be inserted, removed and reordered.
// Register it without the earlier version in the same process.
func (d *Definition[In, Out]) Continues(version int) *Definition[In, Out] {
	changed := *d
	changed.from = append(slices.Clone(d.from), version)
	return &changed
}

// Earlier implements the interface by which package fsm runs functions: the earlier versions whose
// instances the definition runs.
func (d *Definition[In, Out]) Earlier() []int { return d.from }

// Name returns the definition's name.
func (d *Definition[In, Out]) Name() string { return d.name }

// Version returns the definition's version.
func (d *Definition[In, Out]) Version() int { return d.version }

// Instances returns the definition of the function's instances, for functions of package fsm:
// schedules, children of machines, SendOrStart.
func (d *Definition[In, Out]) Instances() *fsm.Definition[In] {
	var step func(context.Context, *fsm.Run[In]) (fsm.Outcome, error)
	if d.fn != nil {
		step = func(context.Context, *fsm.Run[In]) (fsm.Outcome, error) {
			return fsm.Outcome{}, fault.Invalidf("function "+d.name, "must be registered itself, not its Instances")
		}
	}
	options := d.options
	return fsm.Define(d.name, d.version, &options, fsm.Step(journal.Run, step, nil))
}

// Machine implements the interface by which package fsm runs functions.
func (d *Definition[In, Out]) Machine() any { return d.Instances() }

// Run implements the interface by which package fsm runs functions. Use Machines.Register.
func (d *Definition[In, Out]) Run(s journal.Session) {
	r := newRoot(s, s.Instance().Version != d.version)
	defer r.close()
	run := &Run{root: r}
	err := core.Call(func() error {
		in, err := decode[In]("input", s.Instance().State)
		if err != nil {
			r.diverge("%v", err)
		}
		out, err := d.fn(run, in)
		r.joinAll()
		r.finish(run, out, err)
		return nil
	})
	if err != nil {
		r.panicked(err)
	}
}

// Start starts an instance of a function and returns when it is durable.
func Start[In, Out any](ctx context.Context, eng *perdure.Engine, d *Definition[In, Out], in In, options *fsm.StartOptions) (fsm.Started, error) {
	return fsm.Start(ctx, eng, d.Instances(), in, options)
}

// StartIn records the start of an instance in a unit of work. The result is set when the unit is
// committed.
func StartIn[In, Out any](tx *perdure.Tx, d *Definition[In, Out], in In, options *fsm.StartOptions) (*fsm.Started, error) {
	return fsm.StartIn(tx, d.Instances(), in, options)
}

// StartMany starts many instances in one unit of work. options has one element for each input,
// or is empty for the defaults.
func StartMany[In, Out any](ctx context.Context, eng *perdure.Engine, d *Definition[In, Out], in []In, options []*fsm.StartOptions) ([]fsm.Started, error) {
	return fsm.StartMany(ctx, eng, d.Instances(), in, options)
}

// Result waits until an instance of a function is finished and returns its result. The error of
// an instance that is not done is an *EndError.
func Result[In, Out any](ctx context.Context, machines *fsm.Machines, d *Definition[In, Out], id string) (Out, error) {
	var out Out
	i, err := machines.Wait(ctx, id)
	if err != nil {
		return out, err
	}
	if i.Definition != d.name {
		return out, fault.Invalidf("instance "+id, "must be an instance of %s, is one of %s", d.name, i.Definition)
	}
	if i.Status != fsm.Done {
		return out, &EndError{ID: id, Status: i.Status, Message: i.Error}
	}
	return decode[Out]("result", string(i.Result))
}

// decode decodes JSON text. Decoding calls methods of the user's types, so panics are contained.
func decode[T any](what, text string) (T, error) {
	var v T
	if err := core.Call(func() error { return json.Unmarshal([]byte(text), &v) }); err != nil {
		return v, fmt.Errorf("decode %s into %v: %w", what, reflect.TypeFor[T](), err)
	}
	return v, nil
}
