package inspect

import (
	"slices"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/edge"
)

// Live represents the statuses of all unfinished instances, Finished the statuses of all
// finished ones.
const (
	Live     fsm.Status = "live"
	Finished fsm.Status = "finished"
)

// The stages of waiting instances, by what they wait for. They are in different tables.
const (
	stageSignal   = fsm.Waiting + "_" + fsm.Status(fsm.ForSignal)
	stageChildren = fsm.Waiting + "_" + fsm.Status(fsm.ForChildren)
	stageTurn     = fsm.Waiting + "_" + fsm.Status(fsm.ForTurn)
)

// waitingStages are the stages of waiting instances, in the order in which they are listed.
var waitingStages = []struct {
	reason fsm.Reason
	stage  fsm.Status
}{{fsm.ForSignal, stageSignal}, {fsm.ForChildren, stageChildren}, {fsm.ForTurn, stageTurn}}

// groups maps Live and Finished to the statuses that they represent. Live ones are in the
// order in which they are listed.
var groups = map[fsm.Status][]fsm.Status{
	Live:     {fsm.Running, fsm.Ready, fsm.Retrying, fsm.Scheduled, fsm.Waiting, fsm.NoWorker},
	Finished: {fsm.Done, fsm.Stopped, fsm.Failed, fsm.Cancelled, fsm.Quarantined},
}

// expand replaces Live and Finished by the statuses that they represent, and removes
// duplicates.
func expand(statuses []fsm.Status) ([]fsm.Status, error) {
	var all []fsm.Status
	for _, s := range statuses {
		switch {
		case groups[s] != nil:
			all = append(all, groups[s]...)
		case slices.Contains(groups[Live], s), slices.Contains(groups[Finished], s):
			all = append(all, s)
		default:
			return nil, edge.OneOf("status", s, slices.Concat(groups[Live], groups[Finished], []fsm.Status{Live, Finished}))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// stages returns the walks that together visit all instances with the statuses of f, one
// after the other. Instances of different statuses are in different tables. The empty stage
// is a walk over all instances.
func (f Instances) stages() []fsm.Status {
	if len(f.Statuses) == 0 || f.Parent != "" || f.UniqueKey != "" {
		return []fsm.Status{""}
	}
	asked := func(s fsm.Status) bool { return slices.Contains(f.Statuses, s) }
	var all []fsm.Status
	for _, s := range groups[Live] {
		// Retrying instances are stored with the ready and with the scheduled ones.
		if s == fsm.Waiting && asked(s) {
			for _, w := range waitingStages {
				if f.WaitsFor == "" || f.WaitsFor == w.reason {
					all = append(all, w.stage)
				}
			}
			continue
		}
		if asked(s) && s != fsm.Retrying || asked(fsm.Retrying) && (s == fsm.Ready || s == fsm.Scheduled) {
			all = append(all, s)
		}
	}
	dead := asked(fsm.Failed) || asked(fsm.Quarantined) // they are stored together
	switch {
	case asked(fsm.Done) && (dead || asked(fsm.Cancelled) || asked(fsm.Stopped)):
		return append(all, Finished)
	case asked(fsm.Done):
		return append(all, fsm.Done)
	}
	if dead {
		all = append(all, fsm.Failed)
	}
	for _, s := range []fsm.Status{fsm.Cancelled, fsm.Stopped} {
		if asked(s) {
			all = append(all, s)
		}
	}
	return all
}
