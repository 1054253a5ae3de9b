package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// heldFor is the age from which a transaction that keeps deleted rows is reported.
const heldFor = 5 * time.Minute

// horizon finds what keeps the database from removing deleted rows.
func (x *examination) horizon(ctx context.Context) error {
	var h store.Horizon
	look := x.rt.Store.Horizon(cmp.Or(x.options.HeldFor, heldFor), func(found store.Horizon) { h = found })
	if look == nil {
		return nil
	}
	tx, err := x.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, look...); err != nil {
		return fmt.Errorf("check horizon: %w", err)
	}
	found := fmt.Sprintf("%d deleted rows", h.Dead)
	if h.Holder == "" {
		x.add("horizon", found)
		return nil
	}
	x.add("horizon", found, Finding{ID: h.Name, Detail: describe(h)})
	return nil
}

// describe names the holder of the horizon.
func describe(h store.Horizon) string {
	text := h.Holder
	if h.Detail != "" {
		text += " (" + h.Detail + ")"
	}
	if h.Since != nil {
		text += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s keeps %d deleted rows", text, h.Dead)
}
