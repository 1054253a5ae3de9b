package fsm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Instances keep the retry policies that their definition had when they were started. The
// first run of a process records the policies of its definitions with the time, if they
// differ from the last recorded ones. An instance has the newest policies that were
// recorded before it was started, so nothing is stored with the instance itself.

// policies are the retry policies of a definition.
type policies struct {
	// Retry is the policy of steps that set none.
	Retry retry.Policy            `json:"retry"`
	Steps map[string]retry.Policy `json:"steps,omitempty"`
}

// of returns the policy of a step.
func (p policies) of(step string) retry.Policy {
	if own, ok := p.Steps[step]; ok {
		return own
	}
	return p.Retry
}

func (d *Definition[S]) policies() policies {
	p := policies{Retry: d.options.Retry}
	for name, s := range d.steps {
		if !s.options.Retry.IsZero() {
			if p.Steps == nil {
				p.Steps = map[string]retry.Policy{}
			}
			p.Steps[name] = s.options.Retry
		}
	}
	return p
}

// policyAge is the time for which the recorded policies of a definition are cached.
const policyAge = time.Second

// policyBook caches the recorded policies of definitions. The policies of a definition
// are read when one of its steps fails.
type policyBook struct {
	mu   sync.Mutex
	read map[definition]recordedPolicies
}

type recordedPolicies struct {
	sets []policySet
	at   time.Time
}

type policySet struct {
	since time.Time
	policies
}

// policyOf returns the policy for the step of an instance: the recorded policy, or else
// the policy of the definition in this process.
func (m *Machines) policyOf(ctx context.Context, i *store.Instance, here policies) retry.Policy {
	key := definition{i.FSM, i.Version}
	now := m.rt.Clock.Now()
	recorded, fresh := m.policies.get(key, now)
	if !fresh {
		sets, err := m.readPolicies(ctx, key)
		if err != nil {
			return here.of(i.Step) // the commit of the outcome will fail too, or the next failure reads them
		}
		recorded = recordedPolicies{sets: sets, at: now}
		m.policies.put(key, recorded)
	}
	return policiesAt(recorded.sets, i.Created, here).of(i.Step)
}

// get returns the cached policies of a definition, and whether they are recent. If they
// are not, each caller reads them: no caller waits for another caller's read.
func (b *policyBook) get(key definition, now time.Time) (recordedPolicies, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	recorded, ok := b.read[key]
	return recorded, ok && now.Sub(recorded.at) < policyAge && !now.Before(recorded.at)
}

func (b *policyBook) put(key definition, recorded recordedPolicies) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read[key] = recorded
}

// policiesAt returns the policies of an instance that was created at a time.
func policiesAt(sets []policySet, created time.Time, here policies) policies {
	if len(sets) == 0 {
		return here
	}
	at := sets[0]
	for _, s := range sets[1:] {
		if s.since.After(created) {
			break
		}
		at = s
	}
	return at.policies
}

func (m *Machines) readPolicies(ctx context.Context, key definition) ([]policySet, error) {
	var sets []policySet
	var unread error
	err := m.read(ctx, m.rt.Store.ListPolicies(store.Definition{FSM: key.name, Version: key.version}, func(p store.PolicySet) {
		s := policySet{since: p.Since}
		if err := json.Unmarshal([]byte(p.Retry), &s.policies); err != nil {
			unread = fmt.Errorf("read retry policies of %s version %d: %w", key.name, key.version, err)
			return
		}
		sets = append(sets, s)
	}))
	if err == nil {
		err = unread
	}
	return sets, err
}

// recordPolicies returns the statement that records the policies of a definition.
func (m *Machines) recordPolicies(key definition, p policies) (sqldb.Stmt, error) {
	text, err := json.Marshal(p) // maps are encoded in key order
	return m.rt.Store.RecordPolicies(store.Definition{FSM: key.name, Version: key.version}, string(text), m.rt.Now()), err
}

// ChangeRetry changes the policy of a step for all existing instances of a definition.
// The empty step means all steps. Instances that are started later have the policies of
// their definition. All processes apply the change within a second.
func (m *Machines) ChangeRetry(ctx context.Context, name string, version int, step string, p retry.Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	key, id := definition{name, version}, store.Definition{FSM: name, Version: version}
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		var sets []store.PolicySet
		if err := tx.Run(ctx, m.rt.Store.ListPolicies(id, func(p store.PolicySet) { sets = append(sets, p) })); err != nil {
			return err
		}
		if len(sets) == 0 {
			return &fault.NotFound{Kind: "definition", ID: fmt.Sprintf("%s version %d", name, version)}
		}
		var stmts []sqldb.Stmt
		for _, set := range sets {
			changed, err := changedPolicies(set.Retry, step, p)
			if err != nil {
				return err
			}
			stmts = append(stmts, m.rt.Store.ChangePolicies(id, store.PolicySet{Since: set.Since, Retry: changed}))
		}
		return tx.Run(ctx, append(stmts, m.rt.Store.RecordPolicies(id, sets[len(sets)-1].Retry, m.rt.Now()))...)
	})
	if err != nil {
		return fmt.Errorf("change retry policy of fsm %s version %d: %w", name, version, err)
	}
	m.policies.mu.Lock()
	delete(m.policies.read, key)
	m.policies.mu.Unlock()
	return nil
}

// changedPolicies returns recorded policies with another policy for a step, or for all
// steps.
func changedPolicies(recorded, step string, p retry.Policy) (string, error) {
	var all policies
	if err := json.Unmarshal([]byte(recorded), &all); err != nil {
		return "", err
	}
	if step == "" {
		all = policies{Retry: p}
	} else {
		all.Steps = maps.Clone(all.Steps)
		if all.Steps == nil {
			all.Steps = map[string]retry.Policy{}
		}
		all.Steps[step] = p
	}
	text, err := json.Marshal(all)
	return string(text), err
}
