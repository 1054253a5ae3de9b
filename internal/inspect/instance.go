package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Instances filters instances. Zero fields do not filter.
type Instances struct {
	FSM, Queue, Parent, Step string
	// Statuses are the statuses of the instances. Live and Finished each represent several.
	Statuses []fsm.Status
	// WaitsFor selects waiting instances that wait for this reason.
	WaitsFor  fsm.Reason
	UniqueKey string
}

// newest is greater than every id.
const newest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

func decodePosition(cursor string) (at position, err error) {
	if err := decode(cursor, &at); err != nil {
		return at, err
	}
	if at.Stage < 0 || at.ID != "" && (len(at.ID) != len(newest) || uuid.Validate(at.ID) != nil) || edge.Text("cursor", at.Key, edge.MaxKey) != nil {
		return at, fault.Invalidf("cursor", "is malformed")
	}
	return at, nil
}

// places are the tables with the instances of a stage, ordered by id.
var places = map[fsm.Status]store.Place{
	"": store.EveryPlace, Finished: store.EndedPlace, fsm.Done: store.DonePlace, fsm.Failed: store.DeadPlace, fsm.Quarantined: store.DeadPlace,
	fsm.Cancelled: store.CancelledPlace, fsm.Stopped: store.StoppedPlace, stageSignal: store.WaitingPlace, stageChildren: store.BarrierPlace,
	fsm.Running: store.ExecutingPlace, fsm.NoWorker: store.UnroutedPlace,
}

// Instances returns a page of instances and the cursor of the next one, which is empty
// after the last. Ready, retrying and scheduled instances are ordered by due time.
// Instances behind others in a partition are ordered by their turn. All others are ordered
// newest first. Statuses that are stored in separate tables are listed one after the other.
// A page may be short although another page follows.
func (i *Inspector) Instances(ctx context.Context, f Instances, cursor string, limit int) ([]fsm.Instance, string, error) {
	ids, next, err := i.FindInstances(ctx, f, cursor, limit)
	if err != nil || len(ids) == 0 {
		return nil, next, err
	}
	rows, _, err := i.machines.List(ctx, fsm.Filter{IDs: ids}, "", len(ids))
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(rows, func(a, b fsm.Instance) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return rows, next, nil
}

// FindInstances returns the ids of the page that Instances would return.
func (i *Inspector) FindInstances(ctx context.Context, f Instances, cursor string, limit int) (ids []string, next string, err error) {
	at, err := decodePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	if f.WaitsFor != "" && len(f.Statuses) == 0 {
		f.Statuses = []fsm.Status{fsm.Waiting}
	}
	if f.Statuses, err = expand(f.Statuses); err != nil {
		return nil, "", err
	}
	ids, next, err = i.page(ctx, at, limit, func(ctx context.Context, at position, size int) ([]candidate, error) {
		found, err := i.candidates(ctx, f, at, size)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return found, i.markMatching(ctx, f, found)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list instances: %w", err)
	}
	return ids, next, nil
}

// markMatching marks the candidates that match the filter.
func (i *Inspector) markMatching(ctx context.Context, f Instances, found []candidate) error {
	index := map[string]int{}
	ids := make([]string, len(found))
	for n, c := range found {
		ids[n], index[c.id] = c.id, n
	}
	return i.read(ctx, i.rt.Store.InstanceStatuses(ids, i.rt.Now(), func(s store.InstanceStatus) { found[index[s.ID]].matches = f.matches(s) }))
}

func (f Instances) matches(s store.InstanceStatus) bool {
	return (f.FSM == "" || f.FSM == s.FSM) && (f.Queue == "" || f.Queue == s.Queue) && (f.Step == "" || f.Step == s.Step) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, fsm.Status(s.Status))) && (f.WaitsFor == "" || f.WaitsFor == fsm.Reason(s.WaitsFor)) && (f.Parent == "" || s.Parent != nil && f.Parent == *s.Parent)
}

// candidates returns the next instances that may match the filter, in order, stage by
// stage.
func (i *Inspector) candidates(ctx context.Context, f Instances, at position, limit int) ([]candidate, error) {
	var all []candidate
	stages := f.stages()
	for n := at.Stage; n < len(stages) && len(all) < limit; n++ {
		found, err := i.staged(ctx, f, stages[n], at, limit-len(all))
		if err != nil {
			return nil, err
		}
		for k := range found {
			found[k].at.Stage = n
		}
		all, at = append(all, found...), position{}
	}
	return all, nil
}

// staged returns the next candidates of one stage.
func (i *Inspector) staged(ctx context.Context, f Instances, stage fsm.Status, at position, limit int) ([]candidate, error) {
	var found []candidate
	add := func(id string) { found = append(found, candidate{id: id, at: position{ID: id}}) }
	before := at.ID
	if before == "" {
		before = newest
	}
	st := i.rt.Store
	var walk sqldb.Stmt
	switch {
	case f.UniqueKey != "" && at.ID != "":
		return nil, nil // there is one page
	case f.UniqueKey != "":
		walk = st.UniqueInstances(f.UniqueKey, limit, add)
	case f.Parent != "":
		return i.children(ctx, f.Parent, at, limit)
	case stage == fsm.Ready || stage == fsm.Scheduled:
		return i.ready(ctx, f.Queue, stage, at, limit)
	case stage == stageTurn:
		walk = st.QueuedInstances(store.QueuedInstance{Key: at.Key, Seq: at.Seq}, limit, func(q store.QueuedInstance) {
			found = append(found, candidate{id: q.ID, at: position{Key: q.Key, Seq: q.Seq}})
		})
	case stage == "" && f.FSM != "":
		walk = st.InstancesOf(f.FSM, before, limit, add)
	default:
		walk = st.InstancesIn(places[stage], before, limit, add)
	}
	err := i.read(ctx, walk)
	return found, err
}

func (i *Inspector) children(ctx context.Context, parent string, at position, limit int) ([]candidate, error) {
	rows, _, err := i.machines.List(ctx, fsm.Filter{Parent: parent}, at.ID, min(limit, fsm.MaxLimit))
	found := make([]candidate, len(rows))
	for n, r := range rows {
		found[n] = candidate{id: r.ID, at: position{ID: r.ID}}
	}
	return found, err
}

// ready returns the instances that are due now, or later, by due time.
func (i *Inspector) ready(ctx context.Context, queue string, status fsm.Status, at position, limit int) (found []candidate, err error) {
	err = i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		after, until := store.DueInstance{Due: at.Due, ID: at.ID}, now
		if status == fsm.Scheduled {
			until = endOfTime
			if at.ID == "" {
				after = store.DueInstance{Due: now, ID: newest}
			}
		}
		due, err := i.due(ctx, run, queue, after, until, limit)
		for _, d := range due {
			found = append(found, candidate{id: d.ID, at: position{ID: d.ID, Due: d.Due}})
		}
		return err
	})
	return found, err
}

// endOfTime is after every due time.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// oldest is smaller than every id.
const oldest = "00000000-0000-0000-0000-000000000000"

// due returns the instances that become ready between two times, of one queue or of all, by
// due time.
func (i *Inspector) due(ctx context.Context, run sqldb.Runner, queue string, after store.DueInstance, until time.Time, limit int) ([]store.DueInstance, error) {
	if after.ID == "" {
		after = store.DueInstance{Due: time.Unix(0, 0).UTC(), ID: oldest}
	}
	groups, err := i.readyGroups(ctx, run)
	if err != nil {
		return nil, err
	}
	var all []store.DueInstance
	var stmts []sqldb.Stmt
	for _, g := range groups {
		if queue == "" || store.QueueOf(g.Queue) == queue {
			stmts = append(stmts, i.rt.Store.DueInstances(g, after, until, limit, func(d store.DueInstance) { all = append(all, d) }))
		}
	}
	if err := run.Run(ctx, stmts...); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b store.DueInstance) int {
		if c := a.Due.Compare(b.Due); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all[:min(limit, len(all))], nil
}

// CountInstances counts instances up to Cap within a bounded time. If they are rare, n is
// the number found in that time, and capped is true if there may be more.
func (i *Inspector) CountInstances(ctx context.Context, f Instances) (n int, capped bool, err error) {
	ids, next, err := i.FindInstances(ctx, f, "", Cap)
	return len(ids), next != "", err
}
