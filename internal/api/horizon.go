package api

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/store"
)

// heldFor is the age from which a transaction that keeps deleted rows is shown.
const heldFor = time.Minute

// Horizon describes what keeps PostgreSQL from removing deleted rows.
type Horizon struct {
	Holder   string `json:"holder" enum:"session,prepared,slot,standby"`
	Name     string `json:"name" doc:"Process id of the session, or the name of the prepared transaction, the slot or the standby."`
	Detail   string `json:"detail,omitempty"`
	Since    Time   `json:"since,omitzero" doc:"Start of the transaction. Slots and standbys have none."`
	DeadRows int64  `json:"dead_rows" doc:"Deleted rows that were not removed yet, by the server's estimate."`
}

// horizon returns what keeps deleted rows, or nil.
func (a *API) horizon(ctx context.Context) (*Horizon, error) {
	h, err := a.inspect.Horizon(ctx, heldFor)
	if err != nil || h.Holder == "" {
		return nil, err
	}
	return shownHorizon(h), nil
}

func shownHorizon(h store.Horizon) *Horizon {
	shown := &Horizon{Holder: h.Holder, Name: h.Name, Detail: h.Detail, DeadRows: h.Dead}
	if h.Since != nil {
		shown.Since = Time(h.Since.UTC())
	}
	return shown
}
