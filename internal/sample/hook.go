package sample

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/retry"
)

// Notice is the payload of the shop's hooks: a notice about an order.
type Notice struct {
	Order string `json:"order"`
	Text  string `json:"text"`
}

var (
	errBusy   = errors.New("warehouse responded 503: busy")
	errRefuse = errors.New("accounting responded 400: unknown order")
)

func (s *Shop) defineHooks() (err error) {
	s.hooks, err = hook.New(s.eng, Namespace, &hook.Options{Lease: s.options.Lease, OnError: s.options.OnError})
	if err != nil {
		return err
	}
	patient := retry.Policy{Kind: retry.KindExponential, MaxAttempts: 6, Initial: time.Second, Factor: 2, Max: 20 * time.Second, Jitter: 0.2}
	s.warehouse, err = hook.Define(s.hooks, "tell-warehouse", s.callService(0.4, errBusy), &hook.HandlerOptions{Retry: patient})
	if err != nil {
		return err
	}
	s.invoice, err = hook.Define(s.hooks, "book-invoice", s.callService(0.3, errRefuse), &hook.HandlerOptions{Retry: retry.Fixed(3, 2*time.Second)})
	return err
}

// callService returns a handler that calls a service that often fails.
func (s *Shop) callService(failing float64, failure error) func(context.Context, Notice) error {
	return func(ctx context.Context, _ Notice) error {
		if err := s.pause(ctx, s.between(50*time.Millisecond, 500*time.Millisecond)); err != nil {
			return err
		}
		if s.chance(failing) {
			return failure
		}
		return nil
	}
}
