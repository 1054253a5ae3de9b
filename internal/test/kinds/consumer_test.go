package kinds

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
)

// consumer is a consumer of the outbox. Its errors mean the same as those of the kinds of
// work; it has no claims of single items.
var consumer = kind{start: startConsumer, on: everywhere}

func startConsumer(s subject) dispatch.Processor {
	attempt := 0 // handlers of consumers are not told
	c, err := s.eng.Outbox().Register(s.t.Context(), "index", outbox.Stamp{})
	enginetest.NoError(s.t, err)
	p, err := c.Handle(func(ctx context.Context, _ outbox.Entry) error {
		attempt++
		return s.run(ctx, attempt)
	}, &outbox.HandlerOptions{Retry: s.policy, Random: func() float64 { return 0 }})
	enginetest.NoError(s.t, err)
	s.drained(p)
	s.update(func(tx *perdure.Tx) error { return tx.Emit("paid", "o1", nil) })
	return p
}
