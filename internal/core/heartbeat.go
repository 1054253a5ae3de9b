package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// beats is how many heartbeats fit into a lease. The claim is given up when
// one beat is left, so several may fail in a row.
const beats = 5

// beat renews the leases of everything that runs, all in one call, and ends
// when nothing runs: an idle worker makes no queries.
func (w *Worker) beat(busy context.Context) {
	w.every(busy, w.options.Lease/beats, func() { w.extend(busy) })
}

// watch gives up what could not be renewed. It does not wait for the database,
// as beat may have to.
func (w *Worker) watch(busy context.Context) {
	w.every(busy, w.options.Lease/(2*beats), w.giveUp)
}

// every calls fn at an interval from now until busy ends. The next timer is set
// before fn is called: the time that fn takes is not added to the interval.
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
		return // nothing is left to be extended
	}
	if w.note(err); err != nil {
		w.report(fmt.Errorf("extend %s: %w", w.kind.Name, err))
		return
	}
	w.renew(claims, lost, from.Add(w.options.Lease))
}

// claims returns what runs, in the order of the ids: rows are locked in it.
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
			c.stop(ErrLost)
		}
	}
}

// lookEvery is the interval at which a worker asks whether running work was
// cancelled.
const lookEvery = 500 * time.Millisecond

// look cancels the work whose claims were taken away by another process.
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
		w.report(fmt.Errorf("look for cancelled %ss: %w", w.kind.Name, err))
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

// Lose cancels the running work whose claims were taken away.
func (w *Worker) Lose(taken func(id, token string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.running {
		if taken(c.ID, c.Token) {
			c.stop(ErrTaken)
		}
	}
}

// giveUp cancels the work whose lease is about to end by our own clock: the
// database cannot be reached, and others will take it over.
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
