package fsm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/retry"
)

// Instance is an instance as it is stored.
type Instance struct {
	ID       string
	FSM      string
	Version  int
	Step     string
	State    json.RawMessage
	Status   Status
	Queue    string
	Priority Priority
	// Attempt is the number of earlier runs of the current step, Failures the number
	// of those that failed, and Crashes the number of crashes.
	Attempt, Failures int
	Crashes           int
	Parent            string
	Partition, Unique string
	// Result is set if it is Done. Error is the last one.
	Result             json.RawMessage
	Error              string
	Created, Due       time.Time
	Deadline, Finished time.Time
	// Unreceived is the number of signals in its inbox that no step was given. An
	// instance that has ended keeps them until it is removed.
	Unreceived int
}

// Decode reads the result into to.
func (i Instance) Decode(to any) error { return json.Unmarshal(i.Result, to) }

// Filter narrows a List. Zero fields do not narrow.
type Filter struct {
	FSM, Queue, Parent, Step string
	// IDs lists these instances only. Default: all.
	IDs []string
	// Ended lists instances that ended in one of these ways.
	Ended []Status
	// Live lists instances that have not ended.
	Live bool
}

const (
	// DefaultLimit is how many instances List returns unless told otherwise.
	DefaultLimit = 50
	// MaxLimit is how many instances List returns at most.
	MaxLimit = 1000
)

// Get returns one instance, or a *fault.NotFound.
func (m *Machines) Get(ctx context.Context, id string) (Instance, error) {
	if !validID(id) {
		return Instance{}, fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	var found []Instance
	err := m.read(ctx, m.rt.Store.ShowInstances(store.InstanceFilter{ID: id, Limit: 1}, m.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) }))
	if err != nil {
		return Instance{}, fmt.Errorf("get instance: %w", err)
	}
	if len(found) == 0 {
		return Instance{}, &fault.NotFound{Kind: "instance", ID: id}
	}
	return found[0], nil
}

// List returns instances, newest first, and the cursor of the next page, which is
// empty after the last one.
func (m *Machines) List(ctx context.Context, f Filter, cursor string, limit int) ([]Instance, string, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, "", err
	}
	if cursor != "" && !validID(cursor) {
		return nil, "", fault.Invalidf("cursor", "is malformed")
	}
	for _, id := range append(f.IDs, f.Parent) {
		if id != "" && !validID(id) {
			return nil, "", fault.Invalidf("instance id", "is not a UUID in lower case")
		}
	}
	filter := store.InstanceFilter{FSM: f.FSM, Queue: f.Queue, Parent: f.Parent, Step: f.Step, IDs: f.IDs, Live: f.Live, Before: cursor, Limit: limit + 1}
	for _, s := range f.Ended {
		if !s.Ended() {
			return nil, "", fault.Invalidf("status", "%q is not an end", s)
		}
		filter.Ended = append(filter.Ended, string(s))
	}
	var found []Instance
	if err := m.read(ctx, m.rt.Store.ShowInstances(filter, m.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) })); err != nil {
		return nil, "", fmt.Errorf("list instances: %w", err)
	}
	if len(found) <= limit {
		return found, "", nil
	}
	return found[:limit], found[limit-1].ID, nil
}

// Cancel ends an instance and, with it, its children. If a step of it is running,
// its context ends soon and what comes of it is dropped.
func (m *Machines) Cancel(ctx context.Context, id, reason string) error {
	if !validID(id) {
		return fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	return m.end(ctx, id, Cancelled, edge.Message(reason))
}

// maxEnds is how often the end of an instance that keeps moving is tried.
const maxEnds = 20

// errMoved says that an instance moved to another place while it was being ended.
var errMoved = errors.New("instance moved meanwhile")

// end ends an instance from outside, whatever it is doing.
func (m *Machines) end(ctx context.Context, id string, status Status, reason string) error {
	for attempt := 1; ; attempt++ {
		var news news
		err := m.tryEnd(ctx, id, status, reason, &news)
		if err == nil {
			news.publish(m.rt)
			return nil
		}
		if !errors.Is(err, errMoved) && !sqldb.IsTransient(err) || attempt == maxEnds {
			return fmt.Errorf("end instance %s: %w", id, err)
		}
		unit.Pause(ctx, attempt)
	}
}

func (m *Machines) tryEnd(ctx context.Context, id string, status Status, reason string, news *news) error {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	tx, err := m.rt.DB.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, m.rt.Store.TakeLeases(id)); err != nil {
		return err
	}
	if err := m.endTree(ctx, tx, id, status, reason, news); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// endTree ends an instance and then its children, parents first.
func (m *Machines) endTree(ctx context.Context, tx sqldb.Runner, id string, status Status, reason string, news *news) error {
	if err := m.endOne(ctx, tx, id, status, reason, news); err != nil {
		return err
	}
	var children []string
	if err := tx.Run(ctx, m.rt.Store.LiveChildren(id, func(child string) { children = append(children, child) })); err != nil {
		return err
	}
	for _, child := range children {
		err := m.endTree(ctx, tx, child, Cancelled, "parent "+id+" ended: "+reason, news)
		var ended *EndedError
		if err != nil && !errors.As(err, &ended) {
			return err
		}
	}
	return nil
}

// endOne takes the lock of a lease before that of the instance, as outcomes do,
// and then finds the instance in exactly one place.
func (m *Machines) endOne(ctx context.Context, tx sqldb.Runner, id string, status Status, reason string, news *news) error {
	st := m.rt.Store
	var token, ended string
	var leased, queued bool
	var removed int64
	var instance store.Instance
	if err := tx.Run(ctx, st.LeaseOf(id, func(t string) { token = t })); err != nil {
		return err
	}
	if token != "" {
		if err := tx.Run(ctx, st.TakeLease(token, func(string) { leased = true })); err != nil {
			return err
		}
	}
	stmts := []sqldb.Stmt{
		st.LockInstances([]string{id}), st.FinishedStatus(id, func(s string) { ended = s }),
		st.GetInstance(id, func(i *store.Instance) { instance = *i }),
	}
	if err := tx.Run(ctx, stmts...); err != nil {
		return err
	}
	if ended != "" {
		return &EndedError{ID: id, Status: Status(ended)}
	}
	if err := tx.Run(ctx, st.RemoveInstance(id, m.rt.Now(), &removed, &queued)...); err != nil {
		return err
	}
	if removed == 0 {
		if !leased {
			return errMoved
		}
		if err := m.interrupt(ctx, tx, store.Held{ID: id, Token: token}, reason); err != nil {
			return err
		}
	}
	if queued { // it was not at the head of its partition: nobody moves up
		instance.Partition = nil
	}
	end := ending{rt: m.rt, news: news}
	end.add(instance, status, nil, nil, &reason)
	return tx.Run(ctx, end.statements(m.rt.Now())...)
}

// interrupt takes an instance that is in no other place away from the lease that
// we have locked. That lease holds it only if it is still the newest one: a step
// of the instance may have ended, and the next been claimed, before our lock. The
// attempt that this cuts short is recorded.
func (m *Machines) interrupt(ctx context.Context, tx sqldb.Runner, h store.Held, reason string) error {
	newest := ""
	if err := tx.Run(ctx, m.rt.Store.LeaseOf(h.ID, func(token string) { newest = token })); err != nil {
		return err
	}
	if newest != h.Token {
		return errMoved
	}
	return tx.Run(ctx, append(m.rt.Store.RecordTaken(h.Token, []string{h.ID}, retry.Cancelled, reason, m.rt.Now()), m.rt.Store.Interrupt(h))...)
}

// Wait returns the instance when it has ended, or the error of ctx.
func (m *Machines) Wait(ctx context.Context, id string) (Instance, error) {
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		instance, err := m.Get(ctx, id)
		if err != nil || instance.Status.Ended() {
			return instance, err
		}
		timer := m.rt.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return instance, ctx.Err()
		}
	}
}

// Purge removes instances that are done or cancelled for longer than age, and
// returns how many.
func (m *Machines) Purge(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "is negative")
	}
	const batch = 1000
	for total := int64(0); ; {
		var removed int64
		err := m.transact(ctx, func(tx sqldb.Tx) error {
			return tx.Run(ctx, m.rt.Store.PurgeInstances(age, batch, m.rt.Now(), &removed)...)
		})
		if err != nil {
			return total, fmt.Errorf("purge instances: %w", err)
		}
		if total += removed; removed < batch {
			return total, nil
		}
	}
}

func view(v store.InstanceView) Instance {
	i := Instance{
		ID: v.ID, FSM: v.FSM, Version: v.Version, Step: v.Step, State: json.RawMessage(v.State), Status: Status(v.Status), Queue: v.Queue,
		Priority: Priority(v.Priority), Attempt: v.Attempt, Failures: v.Failures, Crashes: v.Crashes, Parent: text(v.Parent), Partition: text(v.Partition),
		Unique: text(v.UniqueKey), Error: text(v.Error), Created: v.Created.UTC(), Due: v.Due.UTC(), Deadline: utc(v.Deadline), Finished: utc(v.Finished),
		Unreceived: v.Unreceived,
	}
	if v.Result != nil {
		i.Result = json.RawMessage(*v.Result)
	}
	return i
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
