package alarm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Record is an alarm as it is stored.
type Record struct {
	Key
	Type     string
	Payload  json.RawMessage
	Status   Status
	Priority perdure.Priority
	// Due is the time when the alarm fires or is retried. Scheduled is the time for which
	// it was scheduled, which a retry does not change.
	Due, Scheduled time.Time
	// Every, or Cron in Zone, defines the ticks of a recurring alarm. Base is a tick of
	// Every, from which the other ticks are computed.
	Every      time.Duration
	Base       time.Time
	Cron, Zone string
	// Recurs describes the recurrence as text. It is empty if the alarm does not recur.
	Recurs    string
	Missed    perdure.Missed
	MaxMissed int
	Retry     retry.Policy
	// Attempts is the number of executions for this tick that returned. Crashes is the
	// number of executions that crashed.
	Attempts, MaxAttempts, Crashes int
	// Error is the error of the last failed attempt.
	Error   string
	Webhook string
	Created time.Time
	// LastAttempt is the time when the alarm was last claimed. It is zero if the alarm
	// was never claimed.
	LastAttempt time.Time
	// Worker is the worker that has claimed a Running alarm, LeaseExpires the end of its
	// lease.
	Worker       string
	LeaseExpires time.Time
}

// Filter selects alarms for List. Zero fields match every alarm.
type Filter struct {
	ActorType, ActorID string
	// Unowned selects the alarms that do not belong to an actor.
	Unowned bool
	// Type selects the alarms of a type. Notifications to webhooks are alarms of the type
	// "perdure.notice". They are listed only if Type is "perdure.notice".
	Type     string
	Statuses []Status
	// DueBy selects the alarms that are due at this time or earlier.
	DueBy time.Time
}

const (
	// DefaultLimit is the default maximum number of alarms that List returns.
	DefaultLimit = 50
	// MaxLimit is the highest limit that List accepts.
	MaxLimit = 1000
)

// List returns alarms, ordered by due time, and the cursor of the next page. The cursor
// is empty on the last page. A page may be short or empty although another page follows:
// if a filter matches few of many alarms, List limits how many alarms it examines.
func (a *Admin) List(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, "", err
	}
	filter, err := f.stored()
	if err != nil {
		return nil, "", err
	}
	if filter.Now, err = a.now(ctx); err != nil {
		return nil, "", fmt.Errorf("list alarms: %w", err)
	}
	if filter.After, err = decodeCursor(cursor); err != nil {
		return nil, "", err
	}
	var records []Record
	more, err := store.Fill(a.rt.Clock.Now, limit+1, func(want int) (int, bool, error) {
		found, more, err := a.stretch(ctx, &filter, want)
		records = append(records, found...)
		return len(found), more, err
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("list alarms: %w", err)
	case len(records) > limit:
		last := records[limit-1]
		return records[:limit], encodeCursor(last.Key, last.Due), nil
	case more:
		return records, encodeCursor(keyOf(filter.After.AlarmKey), filter.After.Due), nil
	}
	return records, "", nil
}

// stretch reads the next part of a list and moves the start of the filter behind it.
func (a *Admin) stretch(ctx context.Context, f *store.AlarmFilter, want int) (records []Record, more bool, err error) {
	f.Limit, f.Last = want, nil
	if end := a.rt.Store.AlarmStretch(*f, func(last *store.Alarm) { f.Last, more = last, true }); len(end) > 0 {
		if err := a.read(ctx, end...); err != nil {
			return nil, false, err
		}
	}
	err = a.read(ctx, a.rt.Store.ListAlarms(*f, func(row store.Alarm) { records = append(records, record(row, f.Now)) }))
	f.After = f.Last
	return records, more, err
}

// now returns the time by which alarms are due.
func (a *Admin) now(ctx context.Context) (now time.Time, err error) {
	err = a.read(ctx, a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { now = t }))
	return now, err
}

// Upcoming lists the alarms that wait for their due time or for a process, for their
// first attempt or for a retry.
func (a *Admin) Upcoming(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	f.Statuses = Waiting
	return a.List(ctx, f, cursor, limit)
}

// Due lists the alarms that are due but not claimed: no process has a handler for them,
// or all such processes are busy. The due time is compared with the clock that also
// decides claims.
func (a *Admin) Due(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	now, err := a.now(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("list alarms: %w", err)
	}
	f.DueBy = now
	return a.Upcoming(ctx, f, cursor, limit)
}

// Next returns the alarm that fires next, or a *fault.NotFound if no alarm waits.
func (a *Admin) Next(ctx context.Context, f Filter) (Record, error) {
	for cursor := ""; ; {
		first, next, err := a.Upcoming(ctx, f, cursor, 1)
		switch {
		case err != nil:
			return Record{}, err
		case len(first) > 0:
			return first[0], nil
		case next == "":
			return Record{}, &fault.NotFound{Kind: "alarm", ID: "next"}
		}
		cursor = next
	}
}

// Get returns one alarm, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, key Key) (Record, error) {
	if err := key.find(); err != nil {
		return Record{}, err
	}
	var found Record
	if err := a.read(ctx, a.getRecord(key, &found)...); err != nil {
		return Record{}, fmt.Errorf("get alarm: %w", err)
	}
	return found, nil
}

// getRecord returns the statements that read the time and an alarm.
func (a *Admin) getRecord(key Key, found *Record) []sqldb.Stmt {
	var now time.Time
	return []sqldb.Stmt{
		a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { now = t }),
		a.rt.Store.GetAlarm(key.stored(), func(row store.Alarm) { *found = record(row, now) }),
	}
}

// GetIn is Get inside a unit of work: it sees the changes of the unit.
func (a *Admin) GetIn(tx *perdure.Tx, key Key) (Record, error) {
	if err := key.find(); err != nil {
		return Record{}, host.In(tx).Fail(err)
	}
	var found Record
	if err := host.In(tx).Attach(nil, a.getRecord(key, &found)...); err != nil {
		return Record{}, err
	}
	return found, host.In(tx).Flush()
}

// LockIn is GetIn that also locks the alarm: no other transaction changes or fires it
// until the unit ends.
func (a *Admin) LockIn(tx *perdure.Tx, key Key) (Record, error) {
	if err := key.find(); err != nil {
		return Record{}, host.In(tx).Fail(err)
	}
	var found Record
	lock := a.rt.Store.FindAlarm(key.stored(), func(string) {})
	if err := host.In(tx).Attach(nil, append([]sqldb.Stmt{lock}, a.getRecord(key, &found)...)...); err != nil {
		return Record{}, err
	}
	return found, host.In(tx).Flush()
}

// Count returns the number of alarms by status.
func (a *Admin) Count(ctx context.Context, f Filter) (map[Status]int64, error) {
	filter, err := f.stored()
	if err != nil {
		return nil, err
	}
	if filter.Now, err = a.now(ctx); err != nil {
		return nil, fmt.Errorf("count alarms: %w", err)
	}
	counts := map[Status]int64{}
	if err := a.read(ctx, a.rt.Store.CountAlarms(filter, func(status string, n int64) { counts[Status(status)] = n })); err != nil {
		return nil, fmt.Errorf("count alarms: %w", err)
	}
	return counts, nil
}

func (f Filter) stored() (store.AlarmFilter, error) {
	stored := store.AlarmFilter{
		ActorType: f.ActorType, ActorID: f.ActorID, Unowned: f.Unowned, Type: f.Type, Hidden: reserved, DueBy: edge.OptionalTime(f.DueBy),
	}
	for field, text := range map[string]string{"actor type": f.ActorType, "actor id": f.ActorID, "type": f.Type} {
		if err := edge.Text(field, text, edge.MaxKey); err != nil {
			return stored, err
		}
	}
	if f.Unowned && (f.ActorType != "" || f.ActorID != "") {
		return stored, fault.Invalidf("filter", "must not select an actor and unowned alarms together")
	}
	for _, s := range f.Statuses {
		if err := edge.OneOf("status", s, Statuses); err != nil {
			return stored, err
		}
		stored.Statuses = append(stored.Statuses, string(s))
	}
	return stored, nil
}

// A cursor is the position of the last row of a page.
type cursor struct {
	Due int64     `json:"d"`
	Key [3]string `json:"k"`
}

func encodeCursor(k Key, due time.Time) string {
	raw, _ := json.Marshal(cursor{Due: due.UnixMicro(), Key: [3]string{k.ActorType, k.ActorID, k.ID}}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor(text string) (*store.Alarm, error) {
	if text == "" {
		return nil, nil
	}
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	due := time.UnixMicro(c.Due).UTC()
	key := Key{ActorType: c.Key[0], ActorID: c.Key[1], ID: c.Key[2]}
	if err != nil || key.check(maxStoredID) != nil || due.Year() < 1 || due.Year() > 9999 {
		return nil, fault.Invalidf("cursor", "is malformed")
	}
	return &store.Alarm{AlarmKey: key.stored(), Due: due}, nil
}

func record(row store.Alarm, now time.Time) Record {
	r := Record{
		Key: keyOf(row.AlarmKey), Type: row.Type, Payload: json.RawMessage(row.Payload), Status: Status(store.Refine(row.Status, row.Attempts, row.Due, now)),
		Priority: perdure.Priority(row.Priority), Due: row.Due.UTC(), Scheduled: row.Occurs.UTC(), Cron: edge.Value(row.Cron), Zone: edge.Value(row.Zone),
		Missed: perdure.Missed(edge.Value(row.Missed)), Attempts: row.Attempts, MaxAttempts: row.MaxAttempts, Crashes: row.Crashes,
		Error: edge.Value(row.Error), Webhook: edge.Value(row.Webhook), Created: row.Created.UTC(), LastAttempt: edge.UTC(row.LastAttempt), LeaseExpires: edge.UTC(row.LeaseExpires),
		Base: edge.UTC(row.Base),
	}
	if r.Status == Running {
		r.Worker = edge.Value(row.Worker) // in other statuses, the row may still have the worker of a crashed process
	}
	if row.EveryMicros != nil {
		r.Every = time.Duration(*row.EveryMicros) * time.Microsecond
	}
	if row.MissedCap != nil && r.Missed == perdure.MissedAll {
		r.MaxMissed = *row.MissedCap
	}
	if ticks, err := ticksOf(row); err == nil && !ticks.IsZero() {
		r.Recurs = ticks.Describe()
	}
	_ = json.Unmarshal([]byte(row.Policy), &r.Retry) // if it cannot be decoded, Retry stays empty
	return r
}
