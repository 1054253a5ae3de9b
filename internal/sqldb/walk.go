package sqldb

import "context"

// maxGroups is the maximum number of groups that Walk finds.
const maxGroups = 300

// Walk collects groups of rows one after the other. The statement that next returns finds
// each group from the previous one.
func Walk[G any](ctx context.Context, run Runner, from G, next func(after G, found func(G)) Stmt) ([]G, error) {
	var all []G
	at := from
	for more := true; more && len(all) < maxGroups; {
		more = false
		if err := run.Run(ctx, next(at, func(g G) { at, more = g, true })); err != nil {
			return nil, err
		}
		if more {
			all = append(all, at)
		}
	}
	return all, nil
}
