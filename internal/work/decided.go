package work

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/store"
)

// Decided is a decision about a claimed item that is to be committed.
type Decided struct {
	*Item
	// Outcome is the decision, for the kind's Write. It is nil for Release and Postpone.
	Outcome any
	// Inline is true if the claim is kept: the item continues in this process.
	Inline bool
	// Alone is true if the decision is not committed separately after its group has failed. The
	// caller receives ErrGroup and calls CommitAlone.
	Alone bool
	// Keyed is true if the outcome inserts rows that another run of the item may have inserted. The
	// claim is then returned, and the item runs again.
	Keyed bool
	// With are functions of the application that run in the transaction of the outcome.
	With []func(*perdure.Tx) error
	// Stale is set if the claim was lost: the outcome was dropped. Taken is also set if the
	// claim was revoked because the item was cancelled.
	Stale, Taken bool
	// Void is set by the kind's Verify if the outcome has no effect: With does not run, and
	// Write writes something else.
	Void bool

	release bool
	drops   bool    // the transaction of the outcome removes the lease, which is empty then
	lane    string  // the lane to which a released item is moved. Empty: it stays
	reason  *string // reason for postponing
	delay   time.Duration
	then    func(error)
}

// held returns the claim of the decision.
func (d *Decided) held() store.Held { return store.Held{ID: d.ID, Token: d.Token} }

// loss returns the reason why a stale outcome was dropped.
func (d *Decided) loss() error {
	if d.Taken {
		return core.ErrTaken
	}
	return core.ErrLost
}
