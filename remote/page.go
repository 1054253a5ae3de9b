package remote

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/fsm"
)

// pageMargin is the number of bytes that are reserved for the fields about a page.
const pageMargin = 1 << 10

// joined returns the children of the last fan-out.
func joined(ctx context.Context, run *fsm.Run[json.RawMessage]) ([]Child, error) {
	if run.Fanouts == 0 {
		return nil, nil
	}
	all, err := run.Children(ctx)
	if err != nil {
		return nil, err
	}
	children := make([]Child, len(all))
	for i, c := range all {
		children[i] = Child{Instance: c.ID, Definition: c.Definition, Ordinal: c.Ordinal, Status: c.Status, Result: c.Result, Error: c.Error, State: c.State}
	}
	return children, nil
}

// page returns the children, starting at an index, that fit into a size, at least one. It
// also returns the number of children up to the end of the page, or 0 if it is the last
// page.
func page(children []Child, from, size int) (some []Child, next int) {
	some = []Child{}
	for i := from; i < len(children); i++ {
		raw, err := json.Marshal(children[i])
		if err != nil { // encoding the whole request fails too
			return children[from:], 0
		}
		if size -= len(raw) + 1; size < 0 && len(some) > 0 {
			return some, i
		}
		some = append(some, children[i])
	}
	return some, 0
}

// fits checks that an answer requests the next page of children if and only if there is
// one. An endpoint that does not support pages must not decide after the first page.
func (a Answer) fits(next int) error {
	switch a.Outcome {
	case "page":
		if next == 0 {
			return fmt.Errorf("outcome page: no further page of children")
		}
	case "next", "await", "spawn", "done":
		if next > 0 {
			return fmt.Errorf("outcome %s: only %d children were read: respond with page to read the others", a.Outcome, next)
		}
	}
	return nil
}
