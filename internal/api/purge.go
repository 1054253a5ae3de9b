package api

import (
	"context"
	"time"
)

// Old is the minimum age of removed work.
type Old struct {
	OlderThan Duration `json:"older_than" doc:"Minimum age of the removed rows."`
}

type oldInput struct{ Body Old }

// Purge selects the finished work to remove.
type Purge struct {
	Old
	Dead bool `json:"dead,omitempty" doc:"Removes failed and quarantined work instead of done and cancelled work."`
}

// purgeInput is the input of a purge. It takes no Idempotency-Key: a purge is many
// transactions, and a repeated purge removes only work that has since become old enough.
type purgeInput struct{ Body Purge }

// Removed is the number of removed items.
type Removed struct {
	Removed int64  `json:"removed"`
	Errors  *int64 `json:"errors,omitempty" doc:"Number of removed errors of tasks."`
}

func (a *API) trimAudit(ctx context.Context, in *oldInput) (*One[Removed], error) {
	n, err := a.inspect.TrimAudit(ctx, time.Duration(in.Body.OlderThan))
	return one(Removed{Removed: n}), err
}
