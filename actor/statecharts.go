package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// StatechartOptions configure a stored statechart. The zero value of every field is its
// default. The fields have the same meaning as in TypeOptions.
type StatechartOptions struct {
	Events        map[CallerKind][]string `json:"events,omitempty"`
	DisableTimers bool                    `json:"disableAlarms,omitempty"`
	SystemEvents  bool                    `json:"systemEvents,omitempty"`
	LogRetention  int                     `json:"logRetention,omitempty"`
}

// Statechart is a version of a stored statechart.
type Statechart struct {
	Name    string            `json:"name"`
	Version int64             `json:"version"`
	Machine json.RawMessage   `json:"machine"`
	Options StatechartOptions `json:"options"`
}

// StoreStatechart stores a statechart as a type: an XState machine as JSON. Its functions must
// be expressions or be among the Effects and Invocations of Options. From then on, every
// process of the database knows the type.
//
// A document that differs from the newest version of its name becomes the next version. Actors
// keep the version with which they were spawned, until Upgrade.
func (a *Actors) StoreStatechart(ctx context.Context, name string, document []byte, options *StatechartOptions) (Statechart, error) {
	return a.StoreStatechartIf(ctx, name, document, options, nil)
}

// StoreStatechartIf is StoreStatechart with a condition. check receives the newest version of
// the name, nil if there is none. If check returns an error, nothing is stored and
// StoreStatechartIf returns that error. No other process stores a version in between. A nil
// check allows everything.
func (a *Actors) StoreStatechartIf(
	ctx context.Context, name string, document []byte, options *StatechartOptions, check func(newest *Statechart) error,
) (Statechart, error) {
	d := Statechart{Name: name, Machine: document}
	if options != nil {
		d.Options = *options
	}
	if a.registered(name) != nil {
		return Statechart{}, fault.Invalidf("actor type "+name, "is already registered by this program")
	}
	if _, err := a.documentKindOf(d); err != nil {
		return Statechart{}, err
	}
	var newest Statechart
	err := a.eng.Update(ctx, func(tx *perdure.Tx) (err error) { //nolint:contextcheck // a unit has its own, which ends earlier
		newest, err = a.storeDocument(tx, d, check)
		return err
	})
	if err != nil {
		return Statechart{}, fmt.Errorf("store statechart %s: %w", name, err)
	}
	_, err = a.remember(newest)
	return newest, err
}

// storeDocument stores the next version of a statechart, if it differs from the newest version
// and check allows it. It returns the newest version after that.
func (a *Actors) storeDocument(tx *perdure.Tx, d Statechart, check func(*Statechart) error) (newest Statechart, err error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return newest, err
	}
	insert := a.rt.Store.InsertMachine(d.Name, string(d.Machine), *text(d.Options), checksum([]byte(*text(d))), a.rt.Now())
	insert.Fail = raced
	get := a.rt.Store.NewestMachine(d.Name, func(m store.Machine) { newest = documentOf(m) })
	next := int64(math.MaxInt64)
	if check != nil {
		if err := run.Run(tx.Context(), get); err != nil {
			return newest, host.In(tx).Fail(err)
		}
		if err := check(existing(newest)); err != nil {
			return newest, host.In(tx).Fail(err)
		}
		next = newest.Version + 1
	}
	if err = run.Run(tx.Context(), insert, get); err == nil && newest.Version > next { // versions have no gaps: another process has stored this one
		err = &sqldb.Transient{Err: fmt.Errorf("version %d was stored concurrently", next)}
	}
	if err != nil {
		return newest, host.In(tx).Fail(err)
	}
	return newest, nil
}

// existing returns nil if d is not a stored statechart.
func existing(d Statechart) *Statechart {
	if d.Version == 0 {
		return nil
	}
	return &d
}

// raced makes the unit retry if another process has stored the same version.
func raced(err error) error {
	var duplicate *fault.Duplicate
	if errors.As(err, &duplicate) {
		return &sqldb.Transient{Err: err}
	}
	return err
}

// Statecharts returns the newest version of every stored statechart.
func (a *Actors) Statecharts(ctx context.Context) ([]Statechart, error) {
	var all []Statechart
	err := a.read(ctx, a.rt.Store.ListMachines(func(m store.Machine) { all = append(all, documentOf(m)) }))
	if err != nil {
		return nil, fmt.Errorf("list statecharts: %w", err)
	}
	return all, nil
}

func documentOf(m store.Machine) Statechart {
	d := Statechart{Name: m.Name, Version: m.Version, Machine: json.RawMessage(m.Document)}
	_ = json.Unmarshal([]byte(m.Options), &d.Options) // the stored JSON is valid
	return d
}

func (a *Actors) documentKindOf(d Statechart) (*kind, error) {
	k, err := a.newKind(d.Name, d.Machine, TypeOptions{
		Version: max(d.Version, 1), Events: d.Options.Events, DisableTimers: d.Options.DisableTimers,
		SystemEvents: d.Options.SystemEvents, LogRetention: d.Options.LogRetention,
	})
	if err != nil {
		return nil, err
	}
	k.data = true
	return k, nil
}

// remember makes a stored statechart known to this process. If the statechart names functions
// that this process does not have, the error is a *fault.NotFound: other processes serve it.
func (a *Actors) remember(d Statechart) (*kind, error) {
	a.mu.RLock()
	k := a.documents[d.Name][d.Version]
	a.mu.RUnlock()
	if k == nil {
		var err error
		if k, err = a.documentKindOf(d); err != nil {
			return nil, fmt.Errorf("load statechart %s: %w: %w", d.Name, unknownType(d.Name), err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.documents[d.Name] == nil {
		a.documents[d.Name] = map[int64]*kind{}
	}
	a.documents[d.Name][d.Version] = k
	a.handle(k)
	return k, nil
}

// newest returns the version of a type for new actors.
func (a *Actors) newest(ctx context.Context, name string) (*kind, error) {
	if k := a.registered(name); k != nil {
		return k, nil
	}
	var found *Statechart
	err := a.read(ctx, a.rt.Store.NewestMachine(name, func(m store.Machine) { d := documentOf(m); found = &d }))
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, unknownType(name)
	}
	return a.remember(*found)
}

// known returns the newest version of a type that this process has seen.
func (a *Actors) known(ctx context.Context, name string) (*kind, error) {
	a.mu.RLock()
	k := a.kinds[name]
	for version, document := range a.documents[name] {
		if k == nil || version > k.options.Version {
			k = document
		}
	}
	a.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	return a.newest(ctx, name)
}

// version returns a version of a type, for reading actors of that version. For a registered
// type it returns the version of this process.
func (a *Actors) version(ctx context.Context, name string, version int64) (*kind, error) {
	if k := a.registered(name); k != nil {
		return k, nil
	}
	a.mu.RLock()
	k := a.documents[name][version]
	a.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	var found *Statechart
	err := a.read(ctx, a.rt.Store.GetMachine(name, version, func(m store.Machine) { d := documentOf(m); found = &d }))
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, unknownType(name)
	}
	return a.remember(*found)
}

// documentKind returns a version of a stored statechart. If this process has not seen the
// version yet, it is read in the batch's transaction.
func (b *batch) documentKind(name string, version int64) (*kind, error) {
	b.actors.mu.RLock()
	k := b.actors.documents[name][version]
	b.actors.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	var found *Statechart
	err := b.run(b.actors.rt.Store.GetMachine(name, version, func(m store.Machine) { d := documentOf(m); found = &d }))
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, unknownType(name)
	}
	return b.actors.remember(*found)
}

// Statechart returns a version of a stored statechart; 0 means the newest.
func (a *Actors) Statechart(ctx context.Context, name string, version int64) (Statechart, error) {
	var found *Statechart
	read := func(m store.Machine) { d := documentOf(m); found = &d }
	get := a.rt.Store.NewestMachine(name, read)
	if version != 0 {
		get = a.rt.Store.GetMachine(name, version, read)
	}
	if err := a.read(ctx, get); err != nil {
		return Statechart{}, fmt.Errorf("get statechart: %w", err)
	}
	if found == nil {
		return Statechart{}, fmt.Errorf("get statechart: %w", unknownType(name))
	}
	return *found, nil
}

// MachineOf returns a version of the machine of a type; 0 means the newest. A type that is
// registered in this process has only one version here.
func (a *Actors) MachineOf(ctx context.Context, name string, version int64) (*statechart.Machine, int64, error) {
	if version == 0 {
		return a.Machine(ctx, name)
	}
	k, err := a.version(ctx, name, version)
	if err != nil {
		return nil, 0, err
	}
	return k.machine, k.options.Version, nil
}

// Machine returns the machine of a type for new actors, and its version.
func (a *Actors) Machine(ctx context.Context, name string) (*statechart.Machine, int64, error) {
	k, err := a.newest(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	return k.machine, k.options.Version, nil
}
