package fsm

import (
	"strings"
	"unicode"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// shares says among what the slots of a queue are shared.
type shares struct {
	// definitions is true if there are several definitions, systems if steps call several
	// systems, or some call one and others none.
	definitions, systems bool
}

// countShares must be called with the lock after the registered definitions have changed.
func (m *Machines) countShares() {
	definitions, systems := map[string]bool{}, map[string]bool{}
	for d, machine := range m.known {
		definitions[d.name] = true
		for _, step := range machine.Steps() {
			systems[machine.system(step)] = true
		}
	}
	m.shares = shares{definitions: len(definitions) > 1, systems: len(systems) > 1}
}

// share returns the names with which an instance shares the slots of its queue: its definition,
// and the system that its step calls.
func (m *Machines) share(i *work.Item) (name, system string) {
	row := i.Row.(*store.Instance)
	m.mu.RLock()
	shared := m.shares.definitions
	m.mu.RUnlock()
	if shared && m.rt.Store.Spreads() {
		name = "fsm:" + row.FSM
	}
	return name, m.systemOf(row)
}

// systemOf returns the system that the step of an instance calls, if slots are shared among
// systems.
func (m *Machines) systemOf(row *store.Instance) string {
	m.mu.RLock()
	shared, machine := m.shares.systems, m.known[definition{row.FSM, row.Version}]
	m.mu.RUnlock()
	if !shared || machine == nil || !m.rt.Store.Spreads() {
		return ""
	}
	if system := machine.system(row.Step); system != "" {
		return "system:" + system
	}
	return ""
}

// maxSystem is the maximum length of the name of a system in bytes.
const maxSystem = 300

func validSystem(name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fault.Invalidf("StepOptions.System", "must not contain control characters")
	}
	return edge.Text("StepOptions.System", name, maxSystem)
}
