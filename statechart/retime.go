package statechart

import (
	"slices"
	"strings"
)

// A TimerPolicy decides what [Tree.Retime] does with pending timers.
type TimerPolicy string

// The policies. Under each policy, every delay of an active state has exactly one timer
// afterwards.
const (
	// KeepTimers keeps the timers that the new machine also has. A new delay counts from the
	// time at which its state was entered, if a timer of the state shows that time, and
	// otherwise from now. Delayed events of actions stay pending.
	KeepTimers TimerPolicy = "keep"
	// RestartTimers restarts all timers from now, including the delayed events of actions.
	RestartTimers TimerPolicy = "restart"
	// DropTimers removes all timers and restarts the delays of the active states from now.
	// Delayed events of actions are lost.
	DropTimers TimerPolicy = "drop"
)

// Retime gives a tree the timers that its machine requires. It is for a tree that was restored
// from the snapshot of another version of the machine. pending are the current timers. before
// is the snapshot of the other version: a state with a new id at the same place of the snapshot
// keeps its timers.
//
// Timers of actors that do not exist are removed. Nothing else is repeated: no entry action, no
// invoked actor.
func (t *Tree) Retime(now int64, before []byte, pending []Timer, policy TimerPolicy) (*Step, error) {
	v, err := decodeWithin("snapshot", before, maxSnapshotNesting)
	if err != nil {
		return nil, err
	}
	r := retiming{tree: t, policy: policy, states: map[string][]string{}, byState: map[place][]Timer{}, wanted: map[string]bool{}}
	r.remember("", v)
	for _, timer := range pending {
		if timer.isAfter() {
			at := r.stateOf(timer)
			r.byState[at] = append(r.byState[at], timer)
		}
	}
	return t.call(now, func() {
		r.arm(t.root)
		for _, timer := range pending {
			r.review(timer)
		}
	})
}

// A retiming migrates the timers of a tree to another version of its machine.
type retiming struct {
	tree   *Tree
	policy TimerPolicy
	// states are the ids of the states that were active in each actor, by the actor's path.
	states map[string][]string
	// byState are the pending timers of state delays.
	byState map[place][]Timer
	// wanted are the keys of the timers that the new machine has.
	wanted map[string]bool
}

// A place identifies a state of an actor by its earlier id.
type place struct {
	path       string
	generation int64
	state      string
}

// remember reads the active states of an actor and its children from a snapshot.
func (r *retiming) remember(path string, v any) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	ids, _ := o.value("nodes").([]any)
	for _, id := range ids {
		if name, ok := id.(string); ok {
			r.states[path] = append(r.states[path], name)
		}
	}
	children, _ := o.value("children").(*object)
	if children == nil {
		return
	}
	for _, id := range children.keys {
		if child, ok := children.value(id).(*object); ok {
			r.remember(strings.TrimPrefix(path+"/"+pathEscaper.Replace(id), "/"), child.value("snapshot"))
		}
	}
}

// isAfter reports whether the timer belongs to the delay of a state.
func (t Timer) isAfter() bool {
	return t.Event.Type == t.ID && strings.HasPrefix(t.ID, afterPrefix) && t.Path == t.Target
}

// stateOf returns the state to whose delay a timer belongs: the longest matching id.
func (r *retiming) stateOf(t Timer) place {
	at := place{path: t.Path, generation: t.Generation}
	for _, id := range r.states[t.Path] {
		if strings.HasSuffix(t.ID, "."+id) && len(id) > len(at.state) {
			at.state = id
		}
	}
	return at
}

// arm schedules the delays of the active states of an actor and its children.
func (r *retiming) arm(a *actor) {
	if a.phase != running || a.logic.machine == nil {
		return
	}
	earlier := pairStates(r.states[a.path()], a.snap.nodes)
	run := a.runner()
	run.prepare(&a.snap, newMessage(initEvent, nil))
	for _, n := range a.snap.nodes {
		for _, x := range n.entry {
			if raise, ok := x.(*raiseAction); ok && raise.isAfter() && !r.wanted[r.key(a, raise)] {
				r.armOne(a, n, raise, earlier[n.id])
			}
		}
	}
	for _, c := range a.snap.children {
		r.arm(c)
	}
}

func (r *retiming) key(a *actor, x *raiseAction) string {
	return Timer{Path: a.path(), Generation: a.generation, ID: x.id}.Key()
}

// pairStates returns the earlier id of each state. If both lists have the same length, two ids
// at the same position are one renamed state.
func pairStates(before []string, after []*node) map[string]string {
	pairs := map[string]string{}
	for _, n := range after {
		if slices.Contains(before, n.id) {
			pairs[n.id] = n.id
		}
	}
	if len(before) != len(after) {
		return pairs
	}
	for i, n := range after {
		isOther := func(o *node) bool { return o.id == before[i] }
		if pairs[n.id] == "" && !slices.ContainsFunc(after, isOther) {
			pairs[n.id] = before[i]
		}
	}
	return pairs
}

// armOne schedules the timer of one delay of a state.
func (r *retiming) armOne(a *actor, n *node, x *raiseAction, earlier string) {
	r.wanted[r.key(a, x)] = true
	of := r.byState[place{a.path(), a.generation, earlier}]
	if earlier == "" || r.policy != KeepTimers {
		of = nil
	}
	name := strings.TrimSuffix(x.id, n.id) + earlier // its earlier id
	timer := Timer{
		Path: a.path(), Generation: a.generation, ID: x.id, Target: a.path(), TargetGeneration: a.generation, Event: x.event.static.Event,
	}
	if i := slices.IndexFunc(of, func(t Timer) bool { return t.ID == name }); i >= 0 {
		if a.armed = true; name == x.id {
			return // it is unchanged
		}
		timer.Delay, timer.Due = of[i].Delay, of[i].Due
	} else {
		ms, err := x.delay.eval(a.runner())
		if err != nil {
			r.tree.broken = err
			return
		}
		timer.Delay, timer.Due = ms, enteredAt(of, r.tree.now)+ms
	}
	if r.tree.count(a) != nil {
		return
	}
	a.armed, timer.Sequence = true, r.tree.next()
	r.tree.timers(TimerOp{Kind: Schedule, Timer: timer})
}

// enteredAt returns the time at which a state was entered, derived from its timers.
func enteredAt(timers []Timer, otherwise int64) int64 {
	if len(timers) == 0 {
		return otherwise
	}
	at := timers[0].Due - timers[0].Delay
	for _, t := range timers[1:] {
		at = min(at, t.Due-t.Delay)
	}
	return min(at, otherwise)
}

// review keeps, restarts or removes a pending timer.
func (r *retiming) review(t Timer) {
	if t.isAfter() {
		if !r.wanted[t.Key()] {
			r.tree.timers(TimerOp{Kind: Remove, Timer: t})
		}
		return
	}
	switch {
	case r.policy == DropTimers || !r.lives(t.Path, t.Generation) || !r.lives(t.Target, t.TargetGeneration):
		r.tree.timers(TimerOp{Kind: Remove, Timer: t})
	case r.policy == RestartTimers:
		t.Due = r.tree.now + t.Delay
		r.tree.timers(TimerOp{Kind: Schedule, Timer: t})
	}
}

func (r *retiming) lives(path string, generation int64) bool {
	a := r.tree.find(path, generation)
	return a != nil && a.phase == running
}
