package alarm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
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
	// Due is when the alarm fires or is tried again, Scheduled the time that it is
	// for, which a retry does not change.
	Due, Scheduled time.Time
	// Every, or Cron in Zone, are the ticks of an alarm that recurs. Base is a tick
	// of Every, which the others are counted from.
	Every      time.Duration
	Base       time.Time
	Cron, Zone string
	// Recurs is the same in words, or empty.
	Recurs    string
	Missed    perdure.Missed
	MaxMissed int
	Retry     retry.Policy
	// Attempts counts the executions for this tick that ended, Crashes those that
	// lost their process.
	Attempts, MaxAttempts, Crashes int
	// Error is the last one.
	Error   string
	Webhook string
	Created time.Time
	// LastAttempt is when it was last claimed, zero if it never was.
	LastAttempt time.Time
	// Worker and LeaseExpires tell who has it, while it is Running.
	Worker       string
	LeaseExpires time.Time
}

// Filter narrows a List. Zero fields do not narrow.
type Filter struct {
	ActorType, ActorID string
	// Unowned leaves the alarms that belong to nobody.
	Unowned bool
	// Type leaves the alarms of a type. Notifications to webhooks are alarms of the
	// type "perdure.notice" and listed only if this says so.
	Type     string
	Statuses []Status
	// DueBy leaves the alarms that are due then or earlier.
	DueBy time.Time
}

const (
	// DefaultLimit is how many alarms List returns unless told otherwise.
	DefaultLimit = 50
	// MaxLimit is how many alarms List returns at most.
	MaxLimit = 1000
)

// List returns alarms, the first to be due first, and the cursor of the next page,
// which is empty after the last one. A page may be short, or empty, and still have a
// next one: where a filter fits few of many alarms, List does not look for long.
func (a *Alarms) List(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
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

// stretch reads the next stretch of a list and moves the filter behind it.
func (a *Alarms) stretch(ctx context.Context, f *store.AlarmFilter, want int) (records []Record, more bool, err error) {
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

// now returns the time that decides what is due.
func (a *Alarms) now(ctx context.Context) (now time.Time, err error) {
	err = a.read(ctx, a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { now = t }))
	return now, err
}

// Upcoming lists the alarms that wait for their due time or for a process, for the first
// attempt or another one.
func (a *Alarms) Upcoming(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	f.Statuses = Waiting
	return a.List(ctx, f, cursor, limit)
}

// Due lists the alarms that wait although they are due, by the clock that
// decides: no process has a handler for them, or all are busy.
func (a *Alarms) Due(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	now, err := a.now(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("list alarms: %w", err)
	}
	f.DueBy = now
	return a.Upcoming(ctx, f, cursor, limit)
}

// Next returns the alarm that fires next, or a *fault.NotFound if none waits.
func (a *Alarms) Next(ctx context.Context, f Filter) (Record, error) {
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
func (a *Alarms) Get(ctx context.Context, key Key) (Record, error) {
	if err := key.check(maxStoredID); err != nil {
		return Record{}, err
	}
	var found Record
	if err := a.read(ctx, a.getRecord(key, &found)...); err != nil {
		return Record{}, fmt.Errorf("get alarm: %w", err)
	}
	return found, nil
}

// getRecord returns the statements that read the time and an alarm.
func (a *Alarms) getRecord(key Key, found *Record) []sqldb.Stmt {
	var now time.Time
	return []sqldb.Stmt{
		a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { now = t }),
		a.rt.Store.GetAlarm(key.stored(), func(row store.Alarm) { *found = record(row, now) }),
	}
}

// GetIn is Get inside a unit of work: it sees what the unit has done.
func (a *Alarms) GetIn(tx *perdure.Tx, key Key) (Record, error) {
	if err := key.check(maxStoredID); err != nil {
		return Record{}, host.In(tx).Fail(err)
	}
	var found Record
	if err := host.In(tx).Attach(nil, a.getRecord(key, &found)...); err != nil {
		return Record{}, err
	}
	return found, host.In(tx).Flush()
}

// LockIn is GetIn, and nobody else changes or fires the alarm until the unit ends.
func (a *Alarms) LockIn(tx *perdure.Tx, key Key) (Record, error) {
	if err := key.check(maxStoredID); err != nil {
		return Record{}, host.In(tx).Fail(err)
	}
	var found Record
	lock := a.rt.Store.FindAlarm(key.stored(), func(string) {})
	if err := host.In(tx).Attach(nil, append([]sqldb.Stmt{lock}, a.getRecord(key, &found)...)...); err != nil {
		return Record{}, err
	}
	return found, host.In(tx).Flush()
}

// Count returns how many alarms there are of each status.
func (a *Alarms) Count(ctx context.Context, f Filter) (map[Status]int64, error) {
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
		return stored, fault.Invalidf("filter", "asks for an actor's alarms that belong to nobody")
	}
	for _, s := range f.Statuses {
		if !slices.Contains(Statuses, s) {
			return stored, fault.Invalidf("status", "%q is unknown", s)
		}
		stored.Statuses = append(stored.Statuses, string(s))
	}
	return stored, nil
}

// A cursor is the place of the last row of a page.
type cursor struct {
	Due int64     `json:"d"`
	Key [3]string `json:"k"`
}

func encodeCursor(k Key, due time.Time) string {
	raw, _ := json.Marshal(cursor{Due: due.UnixMicro(), Key: [3]string{k.ActorType, k.ActorID, k.ID}}) // always can be
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
		r.Worker = edge.Value(row.Worker) // others may have that of a process that was lost
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
	_ = json.Unmarshal([]byte(row.Policy), &r.Retry) // shown as it is, if it can be
	return r
}
