package fsm

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// expire sees to everything that has become due beside the ready instances: the
// leases of lost processes, waits that are over, machines that are now known,
// schedules.
//
// It reports whether suspects are due.
func (m *Machines) expire(ctx context.Context, queue string) (suspects bool, err error) {
	var news news
	var leases []store.ExpiredLease
	var waits []string
	var ends bool
	var crashes []Crash
	var ticking ticking
	err = m.transact(ctx, func(tx sqldb.Tx) error {
		st, now := m.rt.Store, m.rt.Now()
		stmts := []sqldb.Stmt{
			st.ExpiredLeases(queue, sweepLimit, now, func(l store.ExpiredLease) { leases = append(leases, l) }),
			st.ExpiredWaits(sweepLimit, now, func(id string) { waits = append(waits, id) }),
			st.EndsDue(now, func() { ends = true }),
			st.SuspectsDue(queue, now, func() { suspects = true }),
		}
		stmts = append(stmts, st.TimeoutBarriers(sweepLimit, now, news.woken)...)
		if known := m.definitions(); len(known) > 0 {
			stmts = append(stmts, st.RerouteInstances(queue, known, sweepLimit, now, news.woken)...)
		}
		if err := tx.Run(ctx, append(stmts, ticking.find(m)...)...); err != nil {
			return err
		}
		if len(waits) > 0 {
			if err := tx.Run(ctx, st.TimeoutWaits(waits, now, news.woken)...); err != nil {
				return err
			}
		}
		reaped, err := m.reapAll(ctx, tx, leases, &news)
		if err != nil {
			return err
		}
		crashes = reaped
		return ticking.fire(ctx, m, tx, &news)
	})
	if err != nil {
		return false, fmt.Errorf("sweep: %w", err)
	}
	news.publish(m.rt)
	for _, c := range crashes {
		m.options.OnCrash(c)
	}
	m.ends.serve(ends)
	return suspects || len(crashes) > 0, nil
}

// quarantine ends an instance that has lost its process too often.
func (m *Machines) quarantine(ctx context.Context, tx sqldb.Tx, id string, news *news) error {
	var instance store.Instance
	if err := tx.Run(ctx, m.rt.Store.GetInstance(id, func(i *store.Instance) { instance = *i })); err != nil {
		return err
	}
	message := "process was lost too often while the instance ran"
	end := ending{rt: m.rt, news: news}
	end.add(instance, Quarantined, nil, nil, &message)
	return tx.Run(ctx, end.statements(m.rt.Now())...)
}

// definitions returns the steps that this process can run, each definition also
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
