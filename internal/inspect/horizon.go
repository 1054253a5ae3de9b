package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/store"
)

// Horizon returns what has kept the database from removing deleted rows for the given time. It
// has no holder if there is none, or if the database removes deleted rows by itself.
func (i *Inspector) Horizon(ctx context.Context, open time.Duration) (h store.Horizon, err error) {
	look := i.rt.Store.Horizon(open, func(found store.Horizon) { h = found })
	if look == nil {
		return h, nil
	}
	if err := i.read(ctx, look...); err != nil {
		return h, fmt.Errorf("find the oldest transaction: %w", err)
	}
	return h, nil
}
