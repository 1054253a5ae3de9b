package core

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one call of a user's function: the context of its
// claim, with a timeout. It combines context.WithTimeout and context.AfterFunc at a
// fraction of their cost, because every step needs one.
type callContext struct {
	context.Context // context of the claim; it is cancelled through the claim

	deadline time.Time

	mu    sync.Mutex
	err   error
	done  chan struct{}
	after map[*func()]struct{} // called when the context is cancelled
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc lets package context derive contexts without a goroutine for each.
func (c *callContext) AfterFunc(fn func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go fn()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	c.after[&fn] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[&fn]
		delete(c.after, &fn)
		return waiting
	}
}

// end cancels the context, once.
func (c *callContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	for fn := range c.after {
		go (*fn)()
	}
	c.after = nil
}
