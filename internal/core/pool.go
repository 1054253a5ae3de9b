package core

import "sync"

// pool runs functions on as few goroutines as are needed to keep all of them running. A
// goroutine that takes a function first starts a goroutine for the next one, if any, so
// a function that blocks delays no other. Functions that return quickly share a few
// goroutines, whose stacks have already grown. No goroutine stays when there is nothing
// to run.
type pool struct {
	mu     sync.Mutex
	queue  []func()
	coming bool // a goroutine was started that has not taken a function yet
}

func (p *pool) run(fns ...func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, fns...)
	p.call()
}

// call starts a goroutine, unless one is starting or the queue is empty.
func (p *pool) call() {
	if !p.coming && len(p.queue) > 0 {
		p.coming = true
		go p.work()
	}
}

func (p *pool) work() {
	for fn := p.take(true); fn != nil; fn = p.take(false) {
		fn()
	}
}

// take returns the next function, or nil.
func (p *pool) take(first bool) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		p.coming = false
	}
	if len(p.queue) == 0 {
		p.queue = nil
		return nil
	}
	fn := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	p.call()
	return fn
}
