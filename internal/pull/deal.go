package pull

import (
	"slices"

	"github.com/perdure/perdure/internal/clock"
)

// offer makes a task available to the workers. It returns false if the broker is stopping.
func (b *Broker) offer(t *task) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopping {
		return false
	}
	b.tasks[t.work.Token] = t
	b.pending = append(b.pending, t)
	free := 0
	for _, w := range b.waiters {
		free += w.room()
	}
	switch {
	case len(b.pending) >= free:
		b.deal()
	case !b.dealing:
		b.dealing = true
		timer := clock.System.NewTimer(gather)
		go func() {
			<-timer.C()
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dealing = false
			b.deal()
		}()
	}
	return true
}

// deal hands the pending tasks to the calls that wait, one by one in turn, and ends the waits of
// those that have got one. The lock must be held.
func (b *Broker) deal() {
	next := 0
	b.pending = slices.DeleteFunc(b.pending, func(t *task) bool {
		for range b.waiters {
			w := b.waiters[next%len(b.waiters)]
			next++
			if w.room() > 0 && w.session.keys[t.key] {
				b.hand(t, w)
				return true
			}
		}
		return false
	})
	for _, w := range slices.Clone(b.waiters) {
		if len(w.got) > 0 {
			b.leave(w)
			w.answer()
		}
	}
}

// hand gives a task to a call. The lock must be held.
func (b *Broker) hand(t *task, w *waiter) {
	t.session, t.handed = w.session, clock.System.Now()
	w.got = append(w.got, t)
	w.session.tasks[t.work.Token] = t
	b.assigned[t.runner]++
}

// withdraw removes a task that no worker has. It returns false if a worker has it.
func (b *Broker) withdraw(t *task) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.session != nil {
		return false
	}
	b.pending = slices.DeleteFunc(b.pending, func(other *task) bool { return other == t })
	return true
}

// cancel asks the worker of a task to stop it.
func (b *Broker) cancel(t *task, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.cancelled = reason
	if w := t.session.waiter; w != nil {
		b.leave(w)
		w.answer()
	}
}

// forget removes a task whose claim has ended.
func (b *Broker) forget(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tasks, t.work.Token)
	b.pending = slices.DeleteFunc(b.pending, func(other *task) bool { return other == t })
	if t.session != nil {
		delete(t.session.tasks, t.work.Token)
		b.assigned[t.runner]--
	}
}

// leave removes a call from those that wait. The lock must be held.
func (b *Broker) leave(w *waiter) {
	b.waiters = slices.DeleteFunc(b.waiters, func(other *waiter) bool { return other == w })
	if w.session.waiter == w {
		w.session.waiter = nil
	}
}

// room returns how many more items a runner may claim. wants reports whether a session serves it.
func (b *Broker) room(runner string, running int, wants func(*session) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := 0
	for _, t := range b.pending {
		if t.runner == runner {
			own++
		}
	}
	arriving := max(running-b.assigned[runner]-own, 0) // claimed, but not offered yet
	return max(b.free(wants)-len(b.pending)-arriving, 0)
}

// free returns the number of tasks that the waiting calls of some sessions can take. The lock must
// be held.
func (b *Broker) free(wants func(*session) bool) int {
	free := 0
	for _, w := range b.waiters {
		if wants(w.session) {
			free += w.room()
		}
	}
	return free
}
