package core

import (
	"context"
	"fmt"
	"time"
)

// lastWords is how long work may take to return after its context was ended.
const lastWords = 2 * time.Second

// Drain stops claiming and waits for what runs, until ctx is done; then it ends
// the contexts of the rest with ErrStopping and gives them a moment. The claims
// of what still runs after that expire by themselves. Drain may be called
// again; the worker does not start any more.
func (w *Worker) Drain(ctx context.Context) error {
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	if w.idle(ctx) {
		return nil
	}
	w.mu.Lock()
	for c := range w.running {
		c.stop(ErrStopping)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if w.idle(ctx) {
		return nil
	}
	return fmt.Errorf("drain %s: %d still running", w.kind.Name, w.Stats().Running)
}

// idle waits until nothing runs, and reports whether that came before ctx was
// done.
func (w *Worker) idle(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.settled.Broadcast()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.running) > 0 && ctx.Err() == nil {
		w.settled.Wait()
	}
	return len(w.running) == 0
}
