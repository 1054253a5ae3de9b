package fsm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
)

// patience is the time after which a step that does not return is abandoned, counted from
// the cancellation of its context.
const patience = 10 * time.Second

// execution is a claimed instance that this process runs.
type execution struct {
	*work.Item
	machines *Machines
	instance *store.Instance // the row of Item
	inbox    []store.Signal
	history  bool      // the definition keeps the history of its instances
	began    time.Time // start of the running step
	trace    *string   // trace of the running step, for its children
	// journal is the journal of a function. kept has what its last run did and did not record.
	journal []store.JournalRow
	kept    journal.Progress
}

// sealed returns the error if the instance or one of its signals cannot be read here.
func (e *execution) sealed() error {
	err := cmp.Or(e.instance.Sealed, e.instance.Unreadable)
	for _, g := range e.inbox {
		if err == nil {
			err = g.Sealed
		}
	}
	for _, r := range e.journal {
		if err == nil {
			err = r.Sealed
		}
	}
	return err
}

// decision is an outcome, serialized and ready to be committed.
type decision struct {
	outcome Outcome
	// state is the new state. For Done and Stop it is nil if the step did not change the
	// state.
	state    json.RawMessage
	result   json.RawMessage
	err      string
	children []store.NewInstance
	// handled is true if the error handler made the decision.
	handled bool
	// progress has what a function did. failures is the number of failures of the step that it
	// retries.
	progress journal.Progress
	failures int
}

// traced starts the span of a step.
func (e *execution) traced(ctx context.Context) (context.Context, tracing.Span) {
	i, rt := e.instance, e.machines.rt
	ctx, span := rt.Tracer.Process(ctx, rt.Clock.Now(), tracing.Work{
		Kind: "instance", Name: i.FSM, ID: i.ID, Attempt: i.Attempt + 1, Trace: i.Trace, Created: i.Created,
	})
	e.trace = tracing.Of(ctx)
	return ctx, span
}

// failed returns the decision to fail an instance.
func failed(cause error) *decision {
	return &decision{outcome: Outcome{kind: kindFail}, err: edge.Message(cause.Error())}
}

// call runs a user's function with a timeout, recovers panics, and then calls then with
// its error.
func (e *execution) call(ctx context.Context, timeout time.Duration, fn func(context.Context) error, then func(error)) {
	e.Claim.Call(ctx, core.Limits{Timeout: timeout, Patience: patience}, fn, then)
}

// inform fills in the Info of a step.
func (e *execution) inform(info *Info) {
	i := e.instance
	*info = Info{
		ID: i.ID, Definition: i.FSM, Version: i.Version, Step: i.Step, Attempt: i.Attempt + 1, Failures: i.Failures, Crashes: i.Crashes,
		Token: e.Token, TimedOut: i.TimedOut, Rerun: i.Rerun, Fanouts: i.Fanout, Created: i.Created.UTC(),
	}
	if i.CancelReason != nil {
		info.Cancelled, info.CancelReason = true, *i.CancelReason
	}
	if i.Parent != nil {
		info.Parent = *i.Parent
	}
	if i.Dropped != nil {
		_ = json.Unmarshal(i.Dropped, &info.Dropped) // written by this package
	}
	for _, g := range e.inbox {
		signal := signalOf(g)
		info.All = append(info.All, signal)
		if e.gives(g) {
			info.Awaited = append(info.Awaited, signal)
		}
	}
}

// gives reports whether the step receives a signal: a signal for which it waited, a
// signal that was kept for it, or in a rerun any signal that the instance has ever
// awaited.
func (e *execution) gives(g store.Signal) bool {
	i := e.instance
	return slices.Contains(i.Awaits, g.Name) || slices.Contains(i.Seen, g.Seq) || i.Rerun && slices.Contains(i.Awaited, g.Name)
}

// presented returns the signals that the step has received.
func (e *execution) presented() []int64 {
	var seqs []int64
	for _, g := range e.inbox {
		if e.gives(g) {
			seqs = append(seqs, g.Seq)
		}
	}
	return seqs
}

// unmarked returns the signals that the step has received and that are not yet marked as
// received.
func (e *execution) unmarked() []int64 {
	var seqs []int64
	for _, g := range e.inbox {
		if !g.Received && e.gives(g) {
			seqs = append(seqs, g.Seq)
		}
	}
	return seqs
}

// advance applies a committed Next to the local copy of the instance, for the next step.
func (e *execution) advance(d *decision) {
	presented := map[int64]bool{}
	for _, seq := range e.presented() {
		presented[seq] = true
	}
	var left []store.Signal
	for _, g := range e.inbox {
		if !presented[g.Seq] {
			left = append(left, g)
		}
	}
	e.inbox = left
	i := e.instance
	i.Step, i.State, i.Attempt, i.Failures, i.Crashes = d.outcome.step, string(d.state), 0, 0, 0
	i.Awaits, i.Keeps, i.Seen, i.TimedOut, i.Dropped, i.Rerun = nil, false, nil, false, nil, false
}

// children prepares the children of a Spawn.
func (e *execution) children(specs []ChildSpec) ([]store.NewInstance, error) {
	fanout := e.instance.Fanout + 1
	children := make([]store.NewInstance, len(specs))
	for i, spec := range specs {
		if spec.prepare == nil {
			return nil, fault.Invalidf(fmt.Sprintf("child %d", i), "must be made by ChildOf")
		}
		child, err := spec.prepare(e.machines.rt.NewID, e.machines.options.MaxState)
		if err != nil {
			return nil, fmt.Errorf("child %d: %w", i, err)
		}
		ordinal := i
		child.Parent, child.Fanout, child.Ordinal, child.Trace = &e.instance.ID, &fanout, &ordinal, e.trace
		children[i] = child
	}
	return children, nil
}

// Child is a child instance as its parent sees it.
type Child struct {
	ID         string
	Definition string
	Ordinal    int
	Status     Status
	// Result is set if it is Done, Error if it failed.
	Result json.RawMessage
	Error  string
	// State is the state after its last step.
	State json.RawMessage
}

// Decode decodes the result into to.
func (c Child) Decode(to any) error { return json.Unmarshal(c.Result, to) }

// joined reads the children of the last fan-out.
func (e *execution) joined(ctx context.Context) ([]Child, error) {
	var children []Child
	var sealed error
	err := e.machines.read(ctx, e.machines.rt.Store.ListChildren(e.instance.ID, e.instance.Fanout, func(c store.ChildRow) {
		child := Child{ID: c.ID, Definition: c.FSM, Ordinal: c.Ordinal, Status: Running, State: json.RawMessage(c.State)}
		if c.Status != nil {
			child.Status = Status(*c.Status)
		}
		if c.Result != nil {
			child.Result = json.RawMessage(*c.Result)
		}
		if c.Error != nil {
			child.Error = *c.Error
		}
		sealed = firstError(sealed, c.Sealed)
		children = append(children, child)
	}))
	if err = firstError(err, sealed); err != nil {
		return nil, fmt.Errorf("read children: %w", err)
	}
	return children, nil
}

// ChildSpec describes a child to be spawned. ChildOf returns one.
type ChildSpec struct {
	prepare func(newID func() string, maxState int) (store.NewInstance, error)
}

// ChildOf describes a child of a definition.
func ChildOf[S any](d *Definition[S], state S, options *StartOptions) ChildSpec {
	return ChildSpec{prepare: func(newID func() string, maxState int) (store.NewInstance, error) {
		if d == nil {
			return store.NewInstance{}, fault.Invalidf("child", "must have a definition")
		}
		return prepare(d, state, options, newID, maxState)
	}}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func jsonText(v any) *string {
	raw, _ := json.Marshal(v) // names and numbers only
	text := string(raw)
	return &text
}
