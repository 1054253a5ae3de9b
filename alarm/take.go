package alarm

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// take claims alarms that can be decrypted. If it meets the first ones whose key this
// process does not have, it claims again, without such alarms.
func (a *Alarms) take(ctx context.Context, tx sqldb.Tx, c store.AlarmClaim, now store.Now) (taken []store.Alarm, foreign bool, err error) {
	skipped := a.rt.Store.SkipsForeign()
	var claimed []store.Alarm
	if err := tx.Run(ctx, a.rt.Store.ClaimAlarms(c, now, func(row store.Alarm) { claimed = append(claimed, row) })); err != nil {
		return nil, false, err
	}
	taken, returned, foreign := a.openable(claimed, c.Token, skipped)
	if err := tx.Run(ctx, returned...); err != nil || !foreign {
		return taken, false, err
	}
	c.Limit -= len(taken)
	others, _, err := a.take(ctx, tx, c, now)
	return append(taken, others...), true, err
}

// sealedDelay is how long an alarm waits that cannot be decrypted although this
// process has its key.
const sealedDelay = time.Minute

// openable keeps the alarms that can be decrypted, reports the others and returns the
// statements that give them back. An alarm whose key this process does not have is
// released as it was, and the following claims skip such alarms; skipped reports
// whether this claim did, foreign whether an alarm was released.
func (a *Alarms) openable(claimed []store.Alarm, token string, skipped bool) (kept []store.Alarm, returned []sqldb.Stmt, foreign bool) {
	st := a.rt.Store
	for _, row := range claimed {
		hold := store.AlarmHold{AlarmKey: row.AlarmKey, Token: token, Generation: row.Generation}
		switch {
		case row.Sealed == nil:
			kept = append(kept, row)
			continue
		case seal.IsForeign(row.Sealed) && !skipped:
			foreign = true
			returned = append(returned, st.ReleaseAlarm(hold))
		default:
			returned = append(returned, st.PostponeAlarm(hold, nil, sealedDelay, a.rt.Now()))
		}
		a.options.OnError(fmt.Errorf("fire alarm %s: %w", row.String(), row.Sealed))
	}
	if foreign {
		st.SkipForeign()
	}
	return kept, returned, foreign
}
