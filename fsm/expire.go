package fsm

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// expire handles everything that is due except ready instances and their leases: expired
// waits, definitions that are now registered, schedules, and trees to finish.
func (m *Machines) expire(queue string, wakeups *work.Wakeups) work.Expiry {
	var waits []string
	var ends bool
	var ticking ticking
	st, now := m.rt.Store, m.rt.Now()
	find := []sqldb.Stmt{
		st.ExpiredWaits(sweepLimit, now, func(id string) { waits = append(waits, id) }),
		st.EndsDue(now, func() { ends = true }),
	}
	find = append(find, st.TimeoutBarriers(sweepLimit, now, wakeups.Woken)...)
	if known := m.definitions(); len(known) > 0 {
		find = append(find, st.RerouteInstances(queue, known, sweepLimit, now, wakeups.Woken)...)
	}
	return work.Expiry{
		Find: append(find, ticking.find(m)...),
		Handle: func(ctx context.Context, tx sqldb.Tx) error {
			if len(waits) > 0 {
				if err := tx.Run(ctx, st.TimeoutWaits(waits, now, wakeups.Woken)...); err != nil {
					return err
				}
			}
			return ticking.fire(ctx, m, tx, wakeups)
		},
		Committed: func() { m.ends.serve(ends) },
	}
}

// definitions returns the steps that this process can run. Each definition is also listed
// with the empty step.
func (m *Machines) definitions() []store.KnownStep {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var known []store.KnownStep
	for d, machine := range m.known {
		of := store.Definition{FSM: d.name, Version: d.version}
		known = append(known, store.KnownStep{Definition: of})
		for _, step := range machine.Steps() {
			known = append(known, store.KnownStep{Definition: of, Step: step})
		}
	}
	return known
}

// names returns the definitions that this process serves.
func (m *Machines) names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := make([]string, 0, len(m.known))
	for d := range m.known {
		names = append(names, store.Definition{FSM: d.name, Version: d.version}.String())
	}
	slices.Sort(names)
	return names
}
