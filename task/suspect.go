package task

import (
	"math"

	"github.com/perdure/perdure/internal/store"
)

// least returns the smallest batch limit of a suspect that may be claimed now.
func (w *Worker) least() int {
	switch least := w.lane.Least(); least {
	case 0:
		return math.MaxInt32
	case 1:
		return math.MinInt32
	default:
		return least
	}
}

// admit leaves the suspects among claimed tasks that may run together, and returns the
// others.
func (w *Worker) admit(claimed []store.Task) (kept, surplus []store.Task) {
	var limits []int
	for _, t := range claimed {
		if t.BatchLimit != nil {
			limits = append(limits, *t.BatchLimit)
		}
	}
	admitted := w.lane.Admit(limits)
	for _, t := range claimed {
		if t.BatchLimit == nil {
			kept = append(kept, t)
			continue
		}
		if admitted[0] {
			kept = append(kept, t)
		} else {
			surplus = append(surplus, t)
		}
		admitted = admitted[1:]
	}
	return kept, surplus
}

// left makes room for other suspects if the task is one.
func (w *Worker) left(t store.Task) {
	if t.BatchLimit != nil {
		w.lane.Leave(*t.BatchLimit)
	}
}

func (w *Worker) leave(tasks []store.Task) {
	for _, t := range tasks {
		w.left(t)
	}
}
