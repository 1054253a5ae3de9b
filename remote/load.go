package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/store"
)

// Start loads the stored definitions now and whenever they change, until Close. Start
// must be called at most once.
func (r *Registry) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	woken := make(chan struct{}, 1)
	unsubscribe := r.rt.Hub.Subscribe(topic, func(time.Time) {
		select {
		case woken <- struct{}{}:
		default: // a load is already requested
		}
	})
	r.running.Go(func() {
		defer unsubscribe()
		r.watch(ctx, woken)
	})
}

// Close stops the loading that Start has started. Running steps are not interrupted.
func (r *Registry) Close() {
	if r.cancel != nil {
		r.cancel()
	}
	r.running.Wait()
	r.client.Close()
}

func (r *Registry) watch(ctx context.Context, woken <-chan struct{}) {
	reported := ""
	for {
		err := r.Load(ctx)
		switch {
		case err == nil:
			reported = ""
		case ctx.Err() == nil && err.Error() != reported: // report each error once
			reported = err.Error()
			r.options.OnError(err)
		}
		timer := r.rt.Clock.NewTimer(r.options.Poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-woken:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// Load makes the definitions of this process equal to the stored ones, once. A definition
// that cannot be used is reported; the others are still loaded.
func (r *Registry) Load(ctx context.Context) error {
	r.loading.Lock()
	defer r.loading.Unlock()
	rows, err := r.rows(ctx)
	if err != nil {
		return fmt.Errorf("load definitions: %w", err)
	}
	found := map[key]bool{}
	var errs []error
	changed := false
	for _, row := range rows {
		found[key{row.FSM, row.Version}] = true
		fresh, err := r.loadOne(row)
		errs = append(errs, err)
		changed = changed || fresh
	}
	r.forget(found)
	if changed {
		r.rt.Hub.PublishAll() // instances may wait for the new definitions
	}
	return errors.Join(errs...)
}

// loadOne loads a row if it has changed. It reports whether the definition or its steps
// are new to this process.
func (r *Registry) loadOne(row store.RemoteDefinition) (fresh bool, err error) {
	id := key{row.FSM, row.Version}
	r.mu.RLock()
	old, known := r.known[id]
	r.mu.RUnlock()
	if known && old.updated.Equal(row.Updated) {
		return false, nil
	}
	d, err := read(row)
	if err != nil {
		return false, err
	}
	if row.Sealed != nil {
		return false, row.Sealed
	}
	var texts []string
	if err := json.Unmarshal([]byte(row.Secrets), &texts); err != nil {
		return false, fmt.Errorf("read secrets of %s: %w", d.what(), err)
	}
	secrets, err := parseSecrets(texts)
	if err != nil {
		return false, fmt.Errorf("read secrets of %s: %w", d.what(), err)
	}
	r.mu.Lock()
	r.known[id] = loaded{Definition: d, secrets: secrets, updated: row.Updated}
	r.mu.Unlock()
	if r.machines == nil {
		return false, nil
	}
	if !r.options.KeepQueues {
		if err := r.machines.ServeQueue(d.Queue, 0); err != nil {
			return false, err
		}
	}
	if known { // the steps differ if the definition was deleted and stored again
		return !slices.Equal(old.names(), d.names()), r.machines.ReplaceStored(r.machine(d))
	}
	if err := r.machines.RegisterStored(r.machine(d)); err != nil {
		r.mu.Lock()
		delete(r.known, id)
		r.mu.Unlock()
		return false, err
	}
	return true, nil
}

// forget drops the definitions that are no longer stored.
func (r *Registry) forget(found map[key]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.known {
		if found[id] {
			continue
		}
		delete(r.known, id)
		if r.machines != nil {
			r.machines.Unregister(id.name, id.version)
		}
	}
}

// machine returns the definition that the engine runs. The URL and the timeout of the
// endpoint are looked up again for each step.
func (r *Registry) machine(d Definition) *fsm.Definition[json.RawMessage] {
	steps := make([]fsm.StepOf[json.RawMessage], len(d.Steps))
	for i, s := range d.Steps {
		steps[i] = fsm.Step(s.Name, r.call, &fsm.StepOptions{Timeout: MaxTimeout + time.Minute, Retry: s.Retry, System: hostOf(s.URL)})
	}
	options := fsm.DefinitionOptions[json.RawMessage]{Queue: d.Queue, Retry: d.Retry, OnCancel: d.OnCancel, KeepHistory: true}
	return fsm.Define(d.Name, d.Version, &options, steps...)
}

// hostOf returns the host of an endpoint, with which its steps share slots.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func (r *Registry) lookup(name string, version int) (loaded, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	d, ok := r.known[key{name, version}]
	return d, ok
}
