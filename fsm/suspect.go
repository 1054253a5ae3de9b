package fsm

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/core"
)

// suspicion is from how many lost processes on an instance is a suspect. The first
// loss is nobody's fault: a machine that went away takes everything with it that it
// ran.
const suspicion = 2

// suspects runs instances that may take their process down, one at a time in this
// process: whoever is run at the same time would be blamed with them.
type suspects struct{ busy atomic.Bool }

// take claims a suspect, unless one is running.
func (s *suspects) take(ctx context.Context, q *queue, lease time.Duration) ([]*core.Claim, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return nil, nil
	}
	claims, err := q.take(ctx, 1, lease, true)
	if len(claims) == 0 {
		s.busy.Store(false)
	}
	return claims, err
}

// ended makes room for the next suspect if the execution was that of one.
func (s *suspects) ended(e *execution) {
	if e.suspect {
		s.busy.Store(false)
		e.machines.rt.Hub.Publish(topic(e.queue), time.Time{})
	}
}
