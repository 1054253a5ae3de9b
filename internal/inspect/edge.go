package inspect

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/store"
)

// newestPaths is the number of instances from which the transitions of a definition are
// read.
const newestPaths = 200

// Edges returns the transitions from step to step of the newest instances of a definition.
// A definition without history has none.
func (i *Inspector) Edges(ctx context.Context, fsm string) ([]store.Edge, error) {
	var all []store.Edge
	if err := i.read(ctx, i.rt.Store.Edges(fsm, newestPaths, func(e store.Edge) { all = append(all, e) })); err != nil {
		return nil, fmt.Errorf("read transitions of %s: %w", fsm, err)
	}
	return all, nil
}
