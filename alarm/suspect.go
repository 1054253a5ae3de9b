package alarm

import (
	"math"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// sort separates expired claims into those of this process and those that crashed.
func (a *Alarms) sort(expired []store.LostAlarm) (mine, crashed []store.LostAlarm) {
	return core.Expired(expired, func(l store.LostAlarm) string { return l.Worker }, a.id, a.worker.MayReap())
}

// releases returns the statements that return claims without counting a crash.
func (a *Alarms) releases(mine []store.LostAlarm) []sqldb.Stmt {
	stmts := make([]sqldb.Stmt, len(mine))
	for i, l := range mine {
		stmts[i] = a.rt.Store.ReleaseAlarm(store.AlarmHold{AlarmKey: l.AlarmKey, Token: l.Token})
	}
	return stmts
}

// judge decides about an alarm whose process crashed.
func (a *Alarms) judge(l store.LostAlarm) store.AlarmVerdict {
	loss := core.Loss{Crashes: l.Crashes, Lost: l.Others}
	if l.Limit != nil {
		loss = core.Loss{Crashes: l.Crashes, Suspect: true, Limit: *l.Limit, Lost: l.Suspects, Others: l.Others}
	}
	v := core.Judge(loss, a.options.MaxCrashes)
	verdict := store.AlarmVerdict{Crashes: v.Crashes, Delay: v.Delay, Quarantined: v.Quarantined}
	if v.Suspect {
		verdict.Limit = &v.Limit
	}
	return verdict
}

// least returns the smallest batch limit of a suspect that may be claimed now.
func (a *Alarms) least() int {
	switch least := a.lane.Least(); least {
	case 0:
		return math.MaxInt32
	case 1:
		return math.MinInt32
	default:
		return least
	}
}

// admit leaves the suspects among claimed alarms that may run together, and returns
// the statements that release the others.
func (a *Alarms) admit(claimed []store.Alarm, token string) (kept []store.Alarm, surplus []sqldb.Stmt) {
	var limits []int
	for _, row := range claimed {
		if row.Limit != nil {
			limits = append(limits, *row.Limit)
		}
	}
	admitted := a.lane.Admit(limits)
	for _, row := range claimed {
		if row.Limit == nil {
			kept = append(kept, row)
			continue
		}
		if admitted[0] {
			kept = append(kept, row)
		} else {
			surplus = append(surplus, a.rt.Store.ReleaseAlarm(store.AlarmHold{AlarmKey: row.AlarmKey, Token: token}))
		}
		admitted = admitted[1:]
	}
	return kept, surplus
}

// left makes room for other suspects if the alarm is one.
func (a *Alarms) left(row store.Alarm) {
	if row.Limit != nil {
		a.lane.Leave(*row.Limit)
	}
}

func (a *Alarms) leave(rows []store.Alarm) {
	for _, row := range rows {
		a.left(row)
	}
}
