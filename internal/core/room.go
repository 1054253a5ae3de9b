package core

// openSlots returns the number of free slots. The lock must be held.
func (w *Worker) openSlots() int {
	slots := w.options.Concurrency - len(w.running)
	if w.options.Room != nil {
		slots = min(slots, w.options.Room(len(w.running)))
	}
	return slots
}

// Freed reports that Options.Room has grown. It calls the functions of OnFree.
func (w *Worker) Freed() {
	w.mu.Lock()
	w.moreDue = true
	free := w.wakeFree()
	w.mu.Unlock()
	for _, fn := range free {
		fn()
	}
}

// wakeFree returns the functions of OnFree if there may be more due work. The lock must be held.
func (w *Worker) wakeFree() (free []func()) {
	if !w.moreDue || w.stopping {
		return nil
	}
	w.moreDue = false
	for fn := range w.free {
		free = append(free, *fn)
	}
	return free
}
