package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The slots of a worker are shared among the names of its work, so that work of one name that
// hangs cannot take all of them. An eighth of the slots is reserved for names that have none. A
// name that has some may take another while it has less than portion times the number of other
// free slots. So one name has at most 70 of 100 slots, a second one 14 of those that are left,
// and so on. Fewer than five slots are not shared. The same rule applies to the systems that the
// work calls.
//
// Claims that may not begin are held for a short time: work that is quick frees slots within
// it, and then nothing is written. After that they are returned, and other work of the name
// is not claimed until it has room again.

const (
	// portion is the number of slots that a name may take for each free slot.
	portion = 4
	// reserve is the part of the slots that is reserved for names that have none.
	reserve = 8
	// heldFor is the longest time for which a claim is held in memory.
	heldFor = 100 * time.Millisecond
	// tolerated is the number of failures in a row after which a system has fewer slots. As many
	// failures more halve them again.
	tolerated = 5
)

// Share describes the slots of one name or system.
type Share struct {
	// Name is the name of the work or of the system.
	Name string
	// Running is the number of slots that it has. Most is the number that it may have now.
	Running, Most int
	// Held is true if its work waits for slots although others may be free.
	Held bool
	// Failures is the number of failed runs in a row.
	Failures int
}

// share is the state of one name. The worker's lock guards it.
type share struct {
	running  int
	held     bool // claims were returned, and it has had no room since
	system   bool
	failures int
}

// Shares returns the names that have work in this process.
func (w *Worker) Shares() []Share {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Share
	for _, name := range slices.Sorted(maps.Keys(w.shares)) {
		s := w.shares[name]
		all = append(all, Share{Name: name, Running: s.running, Most: s.running + w.room(s), Held: s.held, Failures: s.failures})
	}
	return all
}

// Held returns the names and systems whose work must not be claimed now: they have no room.
func (w *Worker) Held() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, s := range w.shares {
		if s.held {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// room returns the number of further slots that a name may take now. The lock must be held.
func (w *Worker) room(s *share) int {
	free := w.options.Concurrency - w.begun
	left := free - w.options.Concurrency/reserve
	n := max(min((portion*left-s.running+portion)/(portion+1), left), 0)
	if s.running == 0 && free > 0 {
		n = max(n, 1)
	}
	if s.system && s.failures >= tolerated {
		most := w.options.Concurrency * portion / (portion + 1) >> min(s.failures/tolerated, 16)
		n = min(n, max(most, 1)-s.running)
	}
	return max(n, 0)
}

// share returns the share of a name. The lock must be held.
func (w *Worker) share(name string) *share {
	s := w.shares[name]
	if s == nil {
		s = &share{}
		w.shares[name] = s
	}
	return s
}

// shared returns the shares of a claim. The lock must be held.
func (w *Worker) shared(c *Claim) (of [2]*share) {
	if c.Name != "" {
		of[0] = w.share(c.Name)
	}
	if c.System != "" {
		of[1] = w.share(c.System)
		of[1].system = true
	}
	return of
}

// admit takes a slot for a claim if its name and its system have room. The lock must be held.
func (w *Worker) admit(c *Claim) bool {
	of := w.shared(c)
	for _, s := range of {
		if s != nil && w.room(s) <= 0 {
			return false
		}
	}
	for _, s := range of {
		if s != nil {
			s.running++
		}
	}
	w.begun++
	c.admitted = true
	return true
}

// leave frees the slot of a claim. It returns the held claims that may begin now, and whether
// a name has room again. The lock must be held.
func (w *Worker) leave(c *Claim) (begin []*Claim, room bool) {
	if c.admitted {
		c.admitted = false
		w.begun--
		w.unshare(c)
	}
	w.held = slices.DeleteFunc(w.held, func(c *Claim) bool {
		if !w.admit(c) {
			return false
		}
		begin = append(begin, c)
		return true
	})
	for name, s := range w.shares {
		if n := w.room(s); s.held && n > 0 && (n >= w.options.Concurrency/10 || s.running == 0) {
			s.held, room = false, true
		}
		if s.running == 0 && !s.held && s.failures == 0 {
			delete(w.shares, name)
		}
	}
	return begin, room
}

// unshare subtracts a claim from its shares, and counts the failures of its system. A claim that
// was lost says nothing. The lock must be held.
func (w *Worker) unshare(c *Claim) {
	for _, s := range w.shared(c) {
		if s == nil {
			continue
		}
		s.running--
		switch {
		case !c.committed || !s.system:
		case c.Failed:
			s.failures++
		default:
			s.failures = 0
		}
	}
}

// Rename moves the slot of a running claim to another system, which may exceed its share by it:
// the work has continued there.
func (c *Claim) Rename(system string) {
	w := c.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if system == c.System || !c.admitted {
		return
	}
	c.committed = false
	w.unshare(c)
	c.System = system
	for _, s := range w.shared(c) {
		if s != nil {
			s.running++
		}
	}
}

// hold keeps claims whose names have no room. Claims of names that have had no room before are
// returned at once. The lock must be held.
func (w *Worker) hold(ctx context.Context, claims []*Claim) {
	var surplus []*Claim
	for _, c := range claims {
		held := false
		for _, s := range w.shared(c) {
			held = held || s != nil && s.held && w.room(s) <= 0
		}
		if held {
			surplus = append(surplus, c)
		} else {
			w.held = append(w.held, c)
		}
	}
	if len(surplus) > 0 {
		go w.giveBack(ctx, surplus)
	}
	if len(w.held) > 0 && !w.waiting {
		w.waiting = true
		time.AfterFunc(heldFor, func() { w.giveUpHeld(ctx) }) // real time: other work needs the slots
	}
}

// giveUpHeld returns the claims that were held for heldFor.
func (w *Worker) giveUpHeld(ctx context.Context) {
	w.mu.Lock()
	w.waiting = false
	surplus := w.held
	w.held = nil
	for _, c := range surplus {
		for _, s := range w.shared(c) {
			if s != nil && w.room(s) <= 0 {
				s.held = true
			}
		}
	}
	w.mu.Unlock()
	w.giveBack(ctx, surplus)
}

// giveBack returns claims that were not begun.
func (w *Worker) giveBack(ctx context.Context, surplus []*Claim) {
	if len(surplus) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dbTimeout)
	defer cancel()
	give := w.kind.Return
	if give == nil {
		give = w.kind.Release
	}
	if err := give(ctx, surplus); err != nil {
		w.report(fmt.Errorf("return %s: %w", w.kind.Name, err))
	}
	w.returned.Add(int64(len(surplus)))
	for _, c := range surplus {
		c.cancel(nil)
		w.giveSlot(c)
	}
}

// giveSlot ends a claim that was not begun.
func (w *Worker) giveSlot(c *Claim) {
	w.mu.Lock()
	w.running[c].returned++
	w.mu.Unlock()
	w.end(c)
}
