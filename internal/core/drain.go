package core

import (
	"context"
	"fmt"
	"time"
)

// lastWords is the time for which Drain waits for work whose context it has cancelled.
const lastWords = 2 * time.Second

// Drain stops claiming and waits for running work until ctx is done. Then it cancels
// the remaining contexts with ErrStopping and waits up to 2 s more. The claims of work
// that still runs after that expire. Drain may be called again; the worker cannot be
// started again.
func (w *Worker) Drain(ctx context.Context) error {
	w.mu.Lock()
	w.stopping = true
	held := w.held
	w.held = nil
	w.mu.Unlock()
	w.giveBack(ctx, held)
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

// idle waits until nothing is running, and reports whether that happened before ctx was
// done.
func (w *Worker) idle(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runEnded.Broadcast()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.running) > 0 && ctx.Err() == nil {
		w.runEnded.Wait()
	}
	return len(w.running) == 0
}
