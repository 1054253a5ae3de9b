package core

import (
	"context"
	"fmt"
	"time"
)

// beats is how many heartbeats fit into a lease. The claim is given up when
// one beat is left, so several may fail in a row.
const beats = 5

// beat renews the leases of everything that runs, all in one call, and ends
// when nothing runs: an idle worker makes no queries.
func (w *Worker) beat(quiet <-chan struct{}) {
	for {
		timer := w.options.Clock.NewTimer(w.options.Lease / beats)
		select {
		case <-timer.C():
			w.extend()
		case <-quiet:
			timer.Stop()
			return
		}
	}
}

func (w *Worker) extend() {
	claims := w.claims()
	if len(claims) == 0 {
		return
	}
	from := w.options.Clock.Now()
	ctx, cancel := context.WithTimeout(context.Background(), min(w.options.Lease/beats, dbTimeout))
	lost, err := w.kind.Extend(ctx, claims, w.options.Lease)
	cancel()
	if err != nil {
		w.options.OnError(fmt.Errorf("extend %s: %w", w.kind.Name, err))
		w.giveUp(claims)
		return
	}
	w.renew(claims, lost, from.Add(w.options.Lease))
}

func (w *Worker) claims() []*Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := make([]*Claim, 0, len(w.running))
	for c := range w.running {
		claims = append(claims, c)
	}
	return claims
}

// renew notes the new end of the leases and cancels the work whose claim is
// gone.
func (w *Worker) renew(claims, lost []*Claim, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range claims {
		c.until = until
	}
	for _, c := range lost {
		if _, runs := w.running[c]; runs {
			w.lost.Add(1)
			c.cancel(ErrLost)
		}
	}
}

// giveUp cancels the work whose lease is about to end by our own clock: the
// database cannot be reached, and others will take it over.
func (w *Worker) giveUp(claims []*Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline := w.options.Clock.Now().Add(w.options.Lease / beats)
	for _, c := range claims {
		if _, runs := w.running[c]; runs && c.until.Before(deadline) {
			w.lost.Add(1)
			c.cancel(ErrLost)
		}
	}
}
