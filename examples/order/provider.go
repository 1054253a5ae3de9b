package main

import (
	"context"
	"errors"
	"sync"
)

// provider simulates a payment provider that fails at the first request for each order.
var provider = &paymentProvider{seen: map[string]bool{}}

type paymentProvider struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (p *paymentProvider) request(_ context.Context, order, key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen[order+key] {
		p.seen[order+key] = true
		return errors.New("provider does not answer")
	}
	return nil
}
