package effect

import (
	"math"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// sort separates expired claims into those of this process and those that crashed.
func (r *Runner) sort(expired []store.LostHook) (mine, crashed []store.LostHook) {
	return core.Expired(expired, func(l store.LostHook) string { return l.Worker }, r.id, r.worker.MayReap())
}

// judge decides about a row whose process crashed.
func (r *Runner) judge(l store.LostHook) store.HookVerdict {
	loss := core.Loss{Crashes: l.Crashes, Lost: l.Others}
	if l.Limit != nil {
		loss = core.Loss{Crashes: l.Crashes, Suspect: true, Limit: *l.Limit, Lost: l.Suspects, Others: l.Others}
	}
	v := core.Judge(loss, r.options.MaxCrashes)
	verdict := store.HookVerdict{Crashes: v.Crashes, Delay: v.Delay, Quarantined: v.Quarantined}
	if v.Suspect {
		verdict.Limit = &v.Limit
	}
	return verdict
}

// least returns the smallest batch limit of a suspect that may be claimed now.
func (r *Runner) least() int {
	switch least := r.lane.Least(); least {
	case 0:
		return math.MaxInt32
	case 1:
		return math.MinInt32
	default:
		return least
	}
}

// admit leaves the suspects among claimed rows that may run together, and returns the
// statements that give the others back.
func (r *Runner) admit(claimed []store.Hook, token string) (kept []store.Hook, surplus []sqldb.Stmt) {
	var limits []int
	for _, row := range claimed {
		if row.Limit != nil {
			limits = append(limits, *row.Limit)
		}
	}
	admitted := r.lane.Admit(limits)
	for _, row := range claimed {
		if row.Limit == nil {
			kept = append(kept, row)
			continue
		}
		if admitted[0] {
			kept = append(kept, row)
		} else {
			surplus = append(surplus, r.rt.Store.ReleaseHook(row.ID, token, new(bool)))
		}
		admitted = admitted[1:]
	}
	return kept, surplus
}

// left makes room for other suspects if the row is one.
func (r *Runner) left(row store.Hook) {
	if row.Limit != nil {
		r.lane.Leave(*row.Limit)
	}
}

func (r *Runner) leave(rows []store.Hook) {
	for _, row := range rows {
		r.left(row)
	}
}
