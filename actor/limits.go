package actor

import (
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/statechart"
)

// DefaultTimeLimit is the time limit of one step of an actor.
const DefaultTimeLimit = 5 * time.Second

// Limits bound what one event can make a machine do. The step of a machine that
// exceeds a limit is undone, and the actor fails: its status is error, its Record has
// the reason, and the sender receives a *statechart.LimitError. Other actors are not
// affected. The zero value of every field is its default.
type Limits struct {
	// MaxContext is the largest context of an actor, and of each of its children, in
	// bytes. Default: statechart.DefaultMaxContext.
	MaxContext int
	// MaxEvents is the largest number of events and microsteps of a step, children
	// included. Default: statechart.DefaultMaxEvents.
	MaxEvents int
	// MaxOutputs is the largest number of delays, effects, emitted events, log entries
	// and sends of a step. Default: statechart.DefaultMaxOutputs.
	MaxOutputs int
	// Time is the time limit of a step. Negative: none. Default: DefaultTimeLimit.
	Time time.Duration
}

// over returns the options of a machine with the limits that they leave open.
func (l Limits) over(o statechart.Options) statechart.Options {
	edge.Default(&o.MaxContext, l.MaxContext)
	edge.Default(&o.MaxEvents, l.MaxEvents)
	edge.Default(&o.MaxOutputs, l.MaxOutputs)
	if o.Interrupt == nil && l.Time > 0 {
		o.Interrupt = func() func() bool {
			// An engine's clock may be moved during a step; this one only measures.
			end := clock.System.Now().Add(l.Time)
			return func() bool { return clock.System.Now().After(end) }
		}
	}
	return o
}
