package fsm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// RunNow makes an instance due now that waits for its due time or for another attempt. Its
// attempts are kept. It returns a *perdure.StateError if the instance is running, waits for
// something else, or is finished.
func (a *Admin) RunNow(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RunNowIn(tx, id) })
}

// RunNowIn is RunNow as part of a unit of work, which fails if the instance does not wait for
// a time.
func (a *Admin) RunNowIn(tx *perdure.Tx, id string) error {
	if !validID(id) {
		return host.In(tx).Fail(unknown(id))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	st, waited := a.rt.Store, false
	stmts := append([]sqldb.Stmt{st.LockInstances([]string{id})}, st.MakeInstanceDue(id, a.rt.Now(), func(string) { waited = true })...)
	if err = run.Run(tx.Context(), stmts...); err == nil && !waited {
		var found []Instance
		err = run.Run(tx.Context(), st.ShowInstances(store.InstanceFilter{ID: id, Limit: 1}, a.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) }))
		switch {
		case err != nil:
		case len(found) == 0:
			err = unknown(id)
		default:
			err = stateError(id, found[0].Status)
		}
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("run instance now: %w", err))
	}
	return host.In(tx).Attach(a.rt.Hub.PublishAll)
}

// MaxAttempts returns the number of attempts that the retry policy allows for the current
// step of an instance, or 0 if no process has recorded the policy.
func (a *Admin) MaxAttempts(ctx context.Context, i Instance) (int, error) {
	key := definition{i.Definition, i.Version}
	now := a.rt.Clock.Now()
	recorded, fresh := a.machines.policies.get(key, now)
	if !fresh {
		sets, err := a.machines.readPolicies(ctx, key)
		if err != nil {
			return 0, fmt.Errorf("read retry policy of instance: %w", err)
		}
		recorded = recordedPolicies{sets: sets, at: now}
		a.machines.policies.put(key, recorded)
	}
	return policiesAt(recorded.sets, i.Created, policies{}).of(i.Step).MaxAttempts, nil
}
