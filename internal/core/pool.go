package core

import "sync"

// pool runs functions on as few goroutines as keep all of them going. Whoever takes
// a function has the next one taken by somebody else, so one that blocks keeps
// nobody waiting; those that return at once share a few goroutines, whose stacks
// have grown already. No goroutine stays when there is nothing to run.
type pool struct {
	mu     sync.Mutex
	queue  []func()
	coming bool // a goroutine was started that has not taken anything yet
}

func (p *pool) run(fns ...func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, fns...)
	p.call()
}

// call has a goroutine come, unless one does or there is nothing to take.
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
