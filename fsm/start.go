package fsm

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
)

// Scope is the time for which an instance occupies its unique key. An instance that has
// left the scope cannot enter it again, so its key cannot conflict later.
type Scope int

// The scopes.
const (
	// Live: until the instance is finished.
	Live Scope = iota
	// LiveOrDone: until the instance is removed, or until it is stopped, failed,
	// quarantined or cancelled.
	LiveOrDone
	// LiveOrFailed: until the instance is removed, or until it is done or cancelled.
	LiveOrFailed
	// Always: until the instance is removed.
	Always
)

// StartOptions configure the start of an instance. The zero value of every field
// is its default.
type StartOptions struct {
	// ID is the instance's id, a UUID. If an instance has it, the unit of work fails with
	// *fault.Duplicate, unless IfAbsent is set. Default: a new one.
	ID string
	// IfAbsent makes the start succeed without an effect if an instance with the ID exists:
	// one that is live, or one that is finished and not removed yet. Started.Duplicate is
	// then true. A concurrent start of the same ID waits for the other transaction. It needs
	// ID, and excludes Unique: a key that is occupied never fails a unit of work. Default:
	// false.
	IfAbsent bool
	// Queue is the queue to run in. Default: the definition's queue.
	Queue string
	// Priority is the priority among due instances. Default: Normal.
	Priority perdure.Priority
	// At is the time at which the first step is due. In the past: now. Default: now.
	At time.Time
	// Delay is the time before the first step is due, by the database's clock. Set At or
	// Delay, not both. Default: 0.
	Delay time.Duration
	// Deadline is the time limit for the whole instance. When it passes, the instance
	// fails, or continues with its cancel step. Default: 0, no limit.
	Deadline time.Duration
	// Partition serializes instances: each instance runs to completion before the next
	// with the same key, in start order. Default: none.
	Partition string
	// Unique is a key that only one instance of the definition may occupy at a time.
	// Default: none.
	Unique string
	// UniqueScope is the time for which the key is occupied. Default: Live.
	UniqueScope Scope
	// UniqueAcross makes the key unique across all definitions. Default: false.
	UniqueAcross bool
	// Step is the first step. The definition must have it. Default: the first step
	// of the definition.
	Step string
}

// Started is the result of starting an instance.
type Started struct {
	// ID is the new instance, or the existing instance that has the id or occupies the
	// unique key.
	ID string
	// Duplicate is true if no instance was started, because of the unique key or because of
	// IfAbsent.
	Duplicate bool
}

// Start starts an instance and returns when it is durable.
func Start[S any](ctx context.Context, eng *perdure.Engine, d *Definition[S], state S, options *StartOptions) (Started, error) {
	var started *Started
	err := eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		started, err = StartIn(tx, d, state, options)
		return err
	})
	if err != nil {
		return Started{}, err
	}
	return *started, nil
}

// StartIn records the start of an instance in a unit of work. The result is set when the
// unit is committed.
func StartIn[S any](tx *perdure.Tx, d *Definition[S], state S, options *StartOptions) (*Started, error) {
	all, err := StartManyIn(tx, d, []S{state}, []*StartOptions{options})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// StartMany starts many instances in one unit of work. options has one element for each
// state, or is empty for the defaults. StartMany returns one result for each state.
func StartMany[S any](ctx context.Context, eng *perdure.Engine, d *Definition[S], states []S, options []*StartOptions) ([]Started, error) {
	var results []*Started
	err := eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		results, err = StartManyIn(tx, d, states, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Started, len(results))
	for i, r := range results {
		all[i] = *r
	}
	return all, nil
}

// chunk is the maximum number of instances that one statement starts.
const chunk = 1000

// StartManyIn records the start of many instances in a unit of work. The results are set
// when the unit is committed.
func StartManyIn[S any](tx *perdure.Tx, d *Definition[S], states []S, options []*StartOptions) ([]*Started, error) {
	if len(options) != 0 && len(options) != len(states) {
		return nil, host.In(tx).Fail(fault.Invalidf("options", "must be as many as the inputs: got %d for %d", len(options), len(states)))
	}
	if d == nil {
		return nil, host.In(tx).Fail(fault.Invalidf("definition", "must not be nil"))
	}
	rt := host.In(tx).Runtime()
	instances := make([]store.NewInstance, len(states))
	for i, state := range states {
		var o *StartOptions
		if len(options) > 0 {
			o = options[i]
		}
		instance, err := prepare(d, state, o, rt.NewID, rt.Bounds.State())
		if err != nil {
			return nil, host.In(tx).Fail(err)
		}
		instances[i] = instance
	}
	return record(tx, rt, instances)
}

// record attaches the start of instances to a unit of work.
func record(tx *perdure.Tx, rt *host.Runtime, instances []store.NewInstance) ([]*Started, error) {
	results, trace := make([]*Started, len(instances)), tracing.Of(tx.Context())
	for i := range instances {
		instances[i].Trace = trace
	}
	queues := map[string]bool{}
	var stmts []sqldb.Stmt
	for i, n := range instances {
		results[i] = &Started{ID: n.ID}
		queues[n.Queue] = true
		if n.Existed != nil {
			instances[i].Existed = &results[i].Duplicate
		}
	}
	for from := 0; from < len(instances); from += chunk {
		part := instances[from:min(from+chunk, len(instances))]
		stmts = append(stmts, rt.Store.StartInstances(part, rt.Now())...)
	}
	if owners, ok := owners(rt, instances, results); ok {
		stmts = append(stmts, owners)
	}
	committed := func() {
		for queue := range queues {
			rt.Hub.Publish(topic(queue), time.Time{})
		}
	}
	return results, host.In(tx).Attach(committed, stmts...)
}

// owners returns the statement that reads which instances own the unique keys.
func owners(rt *host.Runtime, instances []store.NewInstance, results []*Started) (sqldb.Stmt, bool) {
	inputs := map[store.UniqueKey][]int{}
	var keys []store.UniqueKey
	for i, n := range instances {
		if n.UniqueKey != nil {
			key := store.UniqueKey{Name: *n.UniqueName, Key: *n.UniqueKey}
			if inputs[key] == nil {
				keys = append(keys, key)
			}
			inputs[key] = append(inputs[key], i)
		}
	}
	if len(keys) == 0 {
		return sqldb.Stmt{}, false
	}
	stmt := rt.Store.UniqueOwners(keys, func(key store.UniqueKey, id string) {
		for _, i := range inputs[key] {
			*results[i] = Started{ID: id, Duplicate: id != instances[i].ID}
		}
	})
	stmt.Done = func(rows int64) error {
		if rows < int64(len(keys)) { // an owner finished between the two statements
			return &sqldb.Transient{Err: fault.Invalidf("unique key", "was released concurrently")}
		}
		return nil
	}
	return stmt, true
}

// prepare checks and serializes the start of an instance.
func prepare[S any](d *Definition[S], state S, options *StartOptions, newID func() string, maxState int) (store.NewInstance, error) {
	var o StartOptions
	if options != nil {
		o = *options
	}
	if err := d.validate(); err != nil {
		return store.NewInstance{}, err
	}
	if err := o.validate(); err != nil {
		return store.NewInstance{}, err
	}
	edge.Default(&o.Step, d.order[0])
	if !d.has(o.Step) {
		return store.NewInstance{}, fault.Invalidf("StartOptions.Step", "must be a step of fsm %s version %d, got %q", d.name, d.version, o.Step)
	}
	raw, err := edge.Marshal("state", state, maxState)
	if err != nil {
		return store.NewInstance{}, err
	}
	n := store.NewInstance{
		ID: o.ID, FSM: d.name, Version: d.version, Step: o.Step, State: string(raw), Queue: o.Queue, Priority: int(o.Priority),
		At: edge.OptionalTime(o.At), Delay: o.Delay, UniqueScope: int(o.UniqueScope),
		Partition: edge.Optional(o.Partition), UniqueKey: edge.Optional(o.Unique),
	}
	edge.Default(&n.Queue, d.options.Queue)
	if n.ID == "" {
		n.ID = newID()
	}
	if o.Deadline > 0 {
		n.Deadline = &o.Deadline
	}
	if o.IfAbsent {
		n.Existed = new(bool)
	}
	if n.UniqueKey != nil {
		name := d.name
		if o.UniqueAcross {
			name = ""
		}
		n.UniqueName = &name
	}
	return n, nil
}

func (o StartOptions) validate() error {
	if o.ID != "" && !validID(o.ID) {
		return fault.Invalidf("StartOptions.ID", "must be a UUID in lower case")
	}
	if o.Queue != "" {
		if err := edge.Name("StartOptions.Queue", o.Queue); err != nil {
			return err
		}
	}
	for field, key := range map[string]string{"StartOptions.Partition": o.Partition, "StartOptions.Unique": o.Unique} {
		if key != "" {
			if err := edge.Key(field, key); err != nil {
				return err
			}
		}
	}
	switch {
	case o.Priority < perdure.High || o.Priority > perdure.Low:
		return fault.Invalidf("StartOptions.Priority", "must be High, Normal or Low, got %d", o.Priority)
	case o.UniqueScope < Live || o.UniqueScope > Always:
		return fault.Invalidf("StartOptions.UniqueScope", "must be Live, LiveOrDone, LiveOrFailed or Always")
	case o.Delay != 0 && !o.At.IsZero():
		return fault.Invalidf("StartOptions", "must set At or Delay, not both")
	case o.IfAbsent && (o.ID == "" || o.Unique != ""):
		return fault.Invalidf("StartOptions.IfAbsent", "must be set with ID and without Unique")
	}
	if err := edge.Delay("StartOptions.Delay", o.Delay); err != nil {
		return err
	}
	if err := edge.Time("StartOptions.At", o.At); err != nil {
		return err
	}
	return edge.Delay("StartOptions.Deadline", o.Deadline)
}

// validID reports whether id is a UUID in lower case, as databases write it.
func validID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, r := range id {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (r == '-') || !dash && (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
