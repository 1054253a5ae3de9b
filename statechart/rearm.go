package statechart

import (
	"strings"
)

// Rearm schedules the delays of all active states again, with their full duration from now on.
// It is for a tree whose timers were not stored with its snapshot; XState does not store them.
// Without Rearm such a tree would wait indefinitely. Delayed events of actions are not known
// and are lost.
func (t *Tree) Rearm(now int64) (*Step, error) {
	return t.call(now, func() { t.root.rearm() })
}

func (a *actor) rearm() {
	if a.phase != running || a.logic.machine == nil {
		return
	}
	r := a.runner()
	r.prepare(&a.snap, newMessage(initEvent, nil))
	for _, n := range a.snap.nodes {
		for _, x := range n.entry {
			raise, ok := x.(*raiseAction)
			if !ok || !raise.isAfter() {
				continue
			}
			ms, err := raise.delay.eval(r)
			if err != nil {
				a.tree.broken = err
				return
			}
			if err := a.tree.count(a); err != nil {
				return
			}
			a.schedule(op{kind: opSchedule, to: a, event: raise.event.static, delay: ms, id: raise.id})
		}
	}
	for _, c := range a.snap.children {
		c.rearm()
	}
}

// isAfter reports whether the action is the delay of a state.
func (x *raiseAction) isAfter() bool {
	return x.delay != nil && x.event.static != nil && x.event.static.Type == x.id && strings.HasPrefix(x.id, afterPrefix)
}
