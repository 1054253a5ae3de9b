package store

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// LostAlarm is an alarm whose claim has expired.
type LostAlarm struct {
	AlarmKey
	Worker, Token string
	Crashes       int
	// Limit is the batch limit of a suspect, nil for others.
	Limit *int
	// Suspects and Others are the alarms that its process ran, this one included.
	Suspects, Others int
}

// AlarmVerdict is the consequence of a crash for an alarm.
type AlarmVerdict struct {
	Crashes     int
	Limit       *int
	Delay       time.Duration
	Quarantined bool
}

// ExpiredAlarms returns the statement that locks up to limit expired claims.
func (s *Store) ExpiredAlarms(limit int, now Now, found func(LostAlarm)) sqldb.Stmt {
	expired := s.stmt("AlarmExpired", at(now), limit)
	expired.Row = func(scan sqldb.Scan) error {
		var l LostAlarm
		if err := scan(&l.ActorType, &l.ActorID, &l.ID, &l.Crashes, &l.Worker, &l.Token, &l.Limit); err != nil {
			return err
		}
		found(l)
		return nil
	}
	return expired
}

// ReturnAlarms makes alarms whose expired claims are locked wait again, or quarantines
// them, as judge decides. It returns the alarms as they are stored then.
func (s *Store) ReturnAlarms(ctx context.Context, run sqldb.Runner, lost []LostAlarm, judge func(LostAlarm) AlarmVerdict, message string, now Now) ([]Alarm, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	if err := run.Run(ctx, s.alarmCrowd(lost)); err != nil {
		return nil, err
	}
	var returned []Alarm
	stmts := make([]sqldb.Stmt, len(lost))
	for i, l := range lost {
		v := judge(l)
		status := "pending"
		if v.Quarantined {
			status = "quarantined"
		}
		args := append([]any{status, v.Crashes, v.Limit, at(now), v.Delay.Microseconds(), message}, l.AlarmKey.args()...)
		stmts[i] = s.stmt("AlarmReturn", args...)
		stmts[i].Row = s.alarmRow(func(a Alarm) { returned = append(returned, a) })
	}
	err := run.Run(ctx, stmts...)
	return returned, err
}

// alarmCrowd returns the statement that counts the alarms that the processes of
// expired claims run: a process that let one of its claims expire has crashed.
func (s *Store) alarmCrowd(lost []LostAlarm) sqldb.Stmt {
	crowd := s.stmt("AlarmCrowd")
	crowd.Row = func(scan sqldb.Scan) error {
		var worker *string
		var suspect, n int
		if err := scan(&worker, &suspect, &n); err != nil || worker == nil {
			return err
		}
		for i := range lost {
			switch l := &lost[i]; {
			case l.Worker != *worker:
			case suspect == 1:
				l.Suspects = n
			default:
				l.Others = n
			}
		}
		return nil
	}
	return crowd
}
