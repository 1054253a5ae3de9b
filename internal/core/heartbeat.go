package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// beats is the number of heartbeats per lease. Work is cancelled when one beat of its
// lease is left, so several heartbeats in a row may fail.
const beats = 5

// beat renews the leases of all running work in one call. It ends when nothing is
// running: an idle worker makes no queries.
func (w *Worker) beat(busy context.Context) {
	w.every(busy, w.options.Lease/beats, func() { w.extend(busy) })
}

// watch cancels work whose lease could not be renewed. Unlike beat, it never waits for
// the database.
func (w *Worker) watch(busy context.Context) {
	w.every(busy, w.options.Lease/(2*beats), w.giveUp)
}

// every calls fn at an interval until busy is done. The next timer is set before fn is
// called, so the duration of fn is not added to the interval.
func (w *Worker) every(busy context.Context, interval time.Duration, fn func()) {
	timer := w.options.Clock.NewTimer(interval)
	go func() {
		for {
			select {
			case <-timer.C():
				timer = w.options.Clock.NewTimer(interval)
				fn()
			case <-busy.Done():
				timer.Stop()
				return
			}
		}
	}()
}

func (w *Worker) extend(busy context.Context) {
	claims := slices.DeleteFunc(w.claims(), func(c *Claim) bool { return c.committing.Load() > 0 })
	if len(claims) == 0 {
		return
	}
	from := w.options.Clock.Now()
	ctx, cancel := context.WithTimeout(busy, min(w.options.Lease/beats, dbTimeout))
	defer cancel()
	lost, err := w.kind.Extend(ctx, claims, w.options.Lease)
	if busy.Err() != nil {
		return // nothing is left to be renewed
	}
	if w.note(err); err != nil {
		w.report(fmt.Errorf("extend %s: %w", w.kind.Name, err))
		return
	}
	w.renew(claims, lost, from.Add(w.options.Lease))
}

// claims returns the running claims, sorted by id: rows are locked in this order.
func (w *Worker) claims() []*Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := make([]*Claim, 0, len(w.running))
	for c := range w.running {
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b *Claim) int { return strings.Compare(a.ID, b.ID) })
	return claims
}

// renew records the new end of the leases and cancels the work whose claim was lost.
func (w *Worker) renew(claims, lost []*Claim, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range claims {
		c.until = until
	}
	for _, c := range lost {
		if _, runs := w.running[c]; runs {
			c.stop(ErrLost)
		}
	}
}

// lookEvery is the interval at which a worker checks whether running work was
// cancelled.
const lookEvery = 500 * time.Millisecond

// look cancels the work whose claims another process has revoked.
func (w *Worker) look(busy context.Context) {
	claims := w.claims()
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(busy, dbTimeout)
	defer cancel()
	taken, err := w.kind.Taken(ctx, claims)
	if busy.Err() != nil {
		return
	}
	if err != nil {
		w.report(fmt.Errorf("read cancelled %ss: %w", w.kind.Name, err))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range taken {
		if _, runs := w.running[c]; runs {
			c.stop(ErrTaken)
		}
	}
}

// Lose cancels the running work whose claims were revoked.
func (w *Worker) Lose(taken func(id, token string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.running {
		if taken(c.ID, c.Token) {
			c.stop(ErrTaken)
		}
	}
}

// giveUp cancels the work whose lease is about to expire by the local clock: the
// database cannot be reached, and other processes will claim the work.
func (w *Worker) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline := w.options.Clock.Now().Add(w.options.Lease / beats)
	for c := range w.running {
		if c.until.Before(deadline) {
			c.stop(ErrLost)
		}
	}
}
