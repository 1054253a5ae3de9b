package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/outbox"
)

// unservedAfter is the time after which an entry should have been handled or tried.
const unservedAfter = time.Minute

// unservedConsumer returns a finding if no process handles the entries of a consumer that
// processes have served before, or if it is stopped.
func (x *examination) unservedConsumer(ctx context.Context, c outbox.ConsumerStatus) ([]Finding, error) {
	if c.Stopped {
		return []Finding{{ID: c.Name, Detail: "is stopped: " + c.Error}}, nil
	}
	now := x.rt.Clock.Now()
	if !c.Served || c.Worker != "" || c.RetryAt.After(now.Add(-unservedAfter)) {
		return nil, nil
	}
	unread, err := x.eng.Outbox().List(ctx, c.Position, 1)
	var gap *outbox.GapError
	var diverged *outbox.DivergedError
	switch {
	case errors.As(err, &gap), errors.As(err, &diverged):
		return []Finding{{ID: c.Name, Detail: err.Error()}}, nil
	case err != nil:
		return nil, fmt.Errorf("check consumer %s: %w", c.Name, err)
	case len(unread) == 0:
		return nil, nil
	}
	if waits := now.Sub(unread[0].Created); waits > unservedAfter {
		return []Finding{{ID: c.Name, Detail: fmt.Sprintf("no process handles its entries, which wait for %v", waits.Round(time.Second))}}, nil
	}
	return nil, nil
}
