package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

// spec is the stored form of a definition, except its secrets.
type spec struct {
	Queue string       `json:"queue"`
	Steps []stepSpec   `json:"steps"`
	Retry retry.Policy `json:"retry"`
	// OnCancel is the cancel step, if there is one.
	OnCancel string `json:"on_cancel,omitempty"`
}

type stepSpec struct {
	Name    string        `json:"name"`
	URL     string        `json:"url"`
	Timeout time.Duration `json:"timeout"`
	Retry   *retry.Policy `json:"retry,omitempty"`
}

// topic wakes the registries of all processes.
const topic = "remote"

// Put stores a definition. An existing definition of the same name and version is
// changed: new endpoints, timeouts, retry policies and secrets apply to the next step of
// its instances. The steps, the queue and the cancel step of a version cannot be changed;
// store a new version instead. Instances run to completion on the version with which they
// were started.
func (r *Registry) Put(ctx context.Context, d Definition) (Stored, error) {
	return r.PutIf(ctx, d, func(*Stored) error { return nil })
}

// PutIf is Put with a check. check is called with the stored definition of the same name
// and version, or nil if there is none. No other process can change the definition during
// the call. If check returns an error, nothing is changed and PutIf returns the error.
func (r *Registry) PutIf(ctx context.Context, d Definition, check func(before *Stored) error) (Stored, error) {
	d = d.withDefaults()
	if err := r.validate(d); err != nil {
		return Stored{}, err
	}
	stored, err := r.put(ctx, d, check)
	if err != nil {
		return Stored{}, fmt.Errorf("store %s: %w", d.what(), err)
	}
	r.changed(ctx)
	return stored, nil
}

// changed wakes the registries of all processes. Errors that this process finds while
// loading go to OnError, not to the caller, because the change is stored.
func (r *Registry) changed(ctx context.Context) {
	r.rt.Hub.Publish(topic, time.Time{})
	if err := r.Load(audit.Without(ctx)); err != nil {
		r.options.OnError(err)
	}
}

func (r *Registry) validate(d Definition) error {
	if err := edge.Name("definition", d.Name); err != nil {
		return err
	}
	if err := edge.Version("version of "+d.what(), d.Version); err != nil {
		return err
	}
	if err := edge.Name("queue", d.Queue); err != nil {
		return err
	}
	if err := d.Retry.Validate(); err != nil {
		return err
	}
	if len(d.Steps) == 0 || len(d.Steps) > MaxSteps {
		return fault.Invalidf(d.what(), "must have between 1 and %d steps, got %d", MaxSteps, len(d.Steps))
	}
	for i, s := range d.Steps {
		if err := r.validateStep(s); err != nil {
			return err
		}
		if slices.Contains(d.names()[:i], s.Name) {
			return fault.Invalidf(d.what(), "must not have step %q twice", s.Name)
		}
	}
	if d.OnCancel != "" && !slices.Contains(d.names(), d.OnCancel) {
		return fault.Invalidf(d.what(), "must have its cancel step %q", d.OnCancel)
	}
	_, err := parseSecrets(d.Secrets)
	return err
}

func (r *Registry) validateStep(s Step) error {
	if err := edge.Name("step", s.Name); err != nil {
		return err
	}
	if s.Timeout < 0 || s.Timeout > MaxTimeout {
		return fault.Invalidf("step "+s.Name, "must have a timeout between 0s and %v, got %v", MaxTimeout, s.Timeout)
	}
	if err := s.Retry.Validate(); err != nil && !s.Retry.IsZero() {
		return fmt.Errorf("step %s: %w", s.Name, err)
	}
	_, err := r.client.CheckURL("URL of step "+s.Name, s.URL)
	return err
}

func parseSecrets(texts []string) ([]webhook.Secret, error) {
	if len(texts) > 2 {
		return nil, fault.Invalidf("secrets", "must be at most 2, got %d", len(texts))
	}
	secrets := make([]webhook.Secret, len(texts))
	for i, text := range texts {
		s, err := webhook.ParseSecret(text)
		if err != nil {
			return nil, err
		}
		secrets[i] = s
	}
	return secrets, nil
}

func (r *Registry) put(ctx context.Context, d Definition, check func(*Stored) error) (stored Stored, err error) {
	err = r.transact(ctx, func(ctx context.Context, tx sqldb.Runner) error {
		known, err := r.recorded(ctx, tx, d) // before the row is read, because another process may add it
		if err != nil {
			return err
		}
		old, err := r.lock(ctx, tx, store.Definition{FSM: d.Name, Version: d.Version}, check)
		if err != nil {
			return err
		}
		if known && old == nil {
			return &fault.Duplicate{Constraint: d.what(), Err: fmt.Errorf("%s is defined by a program", d.what())}
		}
		stored, err = r.write(ctx, tx, d, old)
		return err
	})
	return stored, err
}

// lock returns the row of a definition, or nil if there is none, unless check returns an
// error. The row is locked until the transaction ends. If another process adds the row
// concurrently, the second insert fails.
func (r *Registry) lock(ctx context.Context, tx sqldb.Runner, id store.Definition, check func(*Stored) error) (*store.RemoteDefinition, error) {
	var old *store.RemoteDefinition
	if err := tx.Run(ctx, r.rt.Store.GetRemote(id, func(row store.RemoteDefinition) { old = &row })); err != nil {
		return nil, err
	}
	if old == nil {
		return nil, check(nil)
	}
	before, _ := storedOf(*old) // an unreadable definition can be removed
	return old, check(&before)
}

// write inserts or changes the row of a definition.
func (r *Registry) write(ctx context.Context, tx sqldb.Runner, d Definition, old *store.RemoteDefinition) (Stored, error) {
	id := store.Definition{FSM: d.Name, Version: d.Version}
	stored := Stored{Definition: d}
	if old == nil {
		if len(d.Secrets) == 0 {
			secret, err := webhook.NewSecret(r.options.Random)
			if err != nil {
				return Stored{}, err
			}
			stored.Generated = secret.Reveal()
			d.Secrets = []string{stored.Generated}
		}
	} else if old.Sealed != nil && len(d.Secrets) == 0 {
		return Stored{}, old.Sealed
	} else if err := d.mustContinue(*old); err != nil {
		return Stored{}, err
	}
	row, err := d.row(old)
	if err != nil {
		return Stored{}, err
	}
	record, err := r.rt.Store.RecordDefinition(store.RecordedDefinition{Definition: id, First: d.Steps[0].Name, Queue: d.Queue, Steps: d.names(), CancelStep: cancelStep(d.OnCancel)}, r.rt.Now())
	if err != nil {
		return Stored{}, err
	}
	added := true
	change := r.rt.Store.InsertRemote(row, r.rt.Now(), &added)
	if old != nil {
		change = r.rt.Store.UpdateRemote(row, r.rt.Now())
	}
	read := r.rt.Store.GetRemote(id, func(now store.RemoteDefinition) {
		stored.Created, stored.Updated, stored.Revision = now.Created, now.Updated, revision(now)
	})
	err = tx.Run(ctx, change, record, read)
	if err == nil && !added {
		err = &sqldb.Transient{Err: fault.Invalidf(d.what(), "was changed concurrently")}
	}
	stored.Secrets = nil
	return stored, err
}

// recorded reports whether a process or this registry has served this version of the
// definition.
func (r *Registry) recorded(ctx context.Context, tx sqldb.Runner, d Definition) (found bool, err error) {
	err = tx.Run(ctx, r.rt.Store.RecordedDefinitions(func(known store.RecordedDefinition) {
		found = found || known.FSM == d.Name && known.Version == d.Version
	}))
	return found, err
}

// mustContinue rejects a change that running instances could not follow.
func (d Definition) mustContinue(row store.RemoteDefinition) error {
	var old spec
	if err := json.Unmarshal([]byte(row.Spec), &old); err != nil {
		return fmt.Errorf("read %s: %w", d.what(), err)
	}
	names := make([]string, len(old.Steps))
	for i, s := range old.Steps {
		names[i] = s.Name
	}
	if !slices.Equal(names, d.names()) || old.Queue != d.Queue || old.OnCancel != d.OnCancel {
		return fault.Invalidf(d.what(), "must keep its steps, queue and cancel step: store the change as a new version")
	}
	return nil
}

func (d Definition) row(old *store.RemoteDefinition) (store.RemoteDefinition, error) {
	s := spec{Queue: d.Queue, Retry: d.Retry, OnCancel: d.OnCancel, Steps: make([]stepSpec, len(d.Steps))}
	for i, step := range d.Steps {
		s.Steps[i] = stepSpec{Name: step.Name, URL: step.URL, Timeout: step.Timeout}
		if !step.Retry.IsZero() {
			s.Steps[i].Retry = &step.Retry
		}
	}
	row := store.RemoteDefinition{Definition: store.Definition{FSM: d.Name, Version: d.Version}}
	text, err := json.Marshal(s)
	if err != nil {
		return row, err
	}
	row.Spec = string(text)
	if len(d.Secrets) == 0 && old != nil {
		row.Secrets = old.Secrets
		return row, nil
	}
	text, err = json.Marshal(d.Secrets)
	row.Secrets = string(text)
	return row, err
}

// read returns the definition of a row, without its secrets.
func read(row store.RemoteDefinition) (Definition, error) {
	var s spec
	d := Definition{Name: row.FSM, Version: row.Version}
	if err := json.Unmarshal([]byte(row.Spec), &s); err != nil {
		return d, fmt.Errorf("read %s: %w", d.what(), err)
	}
	d.Queue, d.Retry, d.OnCancel = s.Queue, s.Retry, s.OnCancel
	for _, step := range s.Steps {
		of := Step{Name: step.Name, URL: step.URL, Timeout: step.Timeout}
		if step.Retry != nil {
			of.Retry = *step.Retry
		}
		d.Steps = append(d.Steps, of)
	}
	return d, nil
}

// List returns all definitions, the newest version of each machine first.
func (r *Registry) List(ctx context.Context) ([]Stored, error) {
	rows, err := r.rows(ctx)
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	all := make([]Stored, len(rows))
	for i, row := range rows {
		if all[i], err = storedOf(row); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func storedOf(row store.RemoteDefinition) (Stored, error) {
	d, err := read(row)
	return Stored{Definition: d, Created: row.Created, Updated: row.Updated, Revision: revision(row)}, err
}

// revision hashes a row. Secrets are too long to be guessed from the hash.
func revision(row store.RemoteDefinition) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %d %q %q", row.FSM, row.Version, row.Spec, row.Secrets)))
	return hex.EncodeToString(sum[:])
}

func (r *Registry) rows(ctx context.Context) ([]store.RemoteDefinition, error) {
	var rows []store.RemoteDefinition
	ctx, cancel := context.WithTimeout(ctx, r.rt.Timeout)
	defer cancel()
	tx, err := r.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	return rows, tx.Run(ctx, r.rt.Store.RemoteDefinitions(func(row store.RemoteDefinition) { rows = append(rows, row) }))
}

// Delete removes a version of a definition. Its instances wait until the version is
// stored again; cancel them if it will not be.
func (r *Registry) Delete(ctx context.Context, name string, version int) error {
	return r.DeleteIf(ctx, name, version, func(Stored) error { return nil })
}

// DeleteIf is Delete with a check, as in PutIf.
func (r *Registry) DeleteIf(ctx context.Context, name string, version int, check func(before Stored) error) error {
	if err := edge.Version("version", version); err != nil {
		return err
	}
	id := store.Definition{FSM: name, Version: version}
	err := r.transact(ctx, func(ctx context.Context, tx sqldb.Runner) error {
		_, err := r.lock(ctx, tx, id, func(before *Stored) error {
			if before == nil { // a program may have the definition: nothing is forgotten
				return &fault.NotFound{Kind: "definition", ID: fmt.Sprintf("%s version %d", name, version)}
			}
			return check(*before)
		})
		if err != nil {
			return err
		}
		return tx.Run(ctx, r.rt.Store.DeleteRemote(id, new(bool))...)
	})
	if err != nil {
		return fmt.Errorf("delete definition: %w", err)
	}
	r.changed(ctx)
	return nil
}

// transact runs fn as one unit of work.
func (r *Registry) transact(ctx context.Context, fn func(context.Context, sqldb.Runner) error) error {
	return r.eng.Update(ctx, func(tx *perdure.Tx) error {
		run, err := host.In(tx).Runner()
		if err != nil {
			return err
		}
		return fn(tx.Context(), run)
	})
}

func cancelStep(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}
