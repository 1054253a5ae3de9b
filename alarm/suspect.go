package alarm

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// suspicious is how many crashes make an alarm a suspect: it may be the one that
// kills its process. Suspects run one at a time in a process, so that the innocent
// among them are not counted out with the culprit. The first crash makes nobody
// suspect: after a power failure all run at once.
const suspicious = 2

// single leaves at most one suspect among claimed alarms, none while one runs,
// and returns the statements that postpone the others.
func (a *Alarms) single(claimed []store.Alarm, token string, lease time.Duration) (kept []store.Alarm, postponed []sqldb.Stmt) {
	a.mu.RLock()
	taken := a.suspected != Key{}
	a.mu.RUnlock()
	for _, row := range claimed {
		if row.Crashes >= suspicious {
			if taken {
				hold := store.AlarmHold{AlarmKey: row.AlarmKey, Token: token}
				postponed = append(postponed, a.rt.Store.PostponeAlarm(hold, lease/5, a.rt.Now()))
				continue
			}
			taken = true
		}
		kept = append(kept, row)
	}
	return kept, postponed
}

// suspect notes the suspect among claimed alarms, if there is one.
func (a *Alarms) suspect(claimed []store.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range claimed {
		if row.Crashes >= suspicious {
			a.suspected = keyOf(row.AlarmKey)
		}
	}
}

// acquit makes room for the next suspect.
func (a *Alarms) acquit(key Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.suspected == key {
		a.suspected = Key{}
	}
}
