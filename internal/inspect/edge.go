package inspect

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/store"
)

// newestPaths is how many instances of a machine its ways are known from.
const newestPaths = 200

// Edges returns the ways from step to step that the newest instances of a machine
// took. There are none of a machine that keeps no history.
func (i *Inspector) Edges(ctx context.Context, fsm string) ([]store.Edge, error) {
	var all []store.Edge
	if err := i.read(ctx, i.rt.Store.Edges(fsm, newestPaths, func(e store.Edge) { all = append(all, e) })); err != nil {
		return nil, fmt.Errorf("read the ways of %s: %w", fsm, err)
	}
	return all, nil
}
