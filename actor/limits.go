package actor

import (
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/statechart"
)

// DefaultTimeLimit is the default time limit of one transition of an actor.
const DefaultTimeLimit = 5 * time.Second

// Limits bound the work that one event can cause in a machine. A transition that exceeds a
// limit is undone, and the actor fails: its status is error, its Record has the reason, and the
// sender receives a *statechart.LimitError. Other actors are not affected. The zero value of
// every field is its default.
type Limits struct {
	// MaxContext is the maximum size of the context of an actor, and of each of its children,
	// in bytes. Default: statechart.DefaultMaxContext.
	MaxContext int
	// MaxEvents is the maximum number of events and microsteps of a transition, including
	// children. Default: statechart.DefaultMaxEvents.
	MaxEvents int
	// MaxOutputs is the maximum number of timers, effects, emitted events, log entries and
	// sends of a transition. Default: statechart.DefaultMaxOutputs.
	MaxOutputs int
	// Time is the time limit of a transition. A negative value means no limit. Default:
	// DefaultTimeLimit.
	Time time.Duration
}

// over returns the options of a machine, with these limits for the limits that the options do
// not set.
func (l Limits) over(o statechart.Options) statechart.Options {
	edge.Default(&o.MaxContext, l.MaxContext)
	edge.Default(&o.MaxEvents, l.MaxEvents)
	edge.Default(&o.MaxOutputs, l.MaxOutputs)
	if o.Interrupt == nil && l.Time > 0 {
		o.Interrupt = func() func() bool {
			// The engine's clock may be moved during a transition. The system clock is only
			// used to measure.
			end := clock.System.Now().Add(l.Time)
			return func() bool { return clock.System.Now().After(end) }
		}
	}
	return o
}
