package store

import (
	"slices"
	"strings"
	"time"
)

// The statuses of work. Tables, views and statements use the same words, except queues.task and
// timers, which use older words: see taskWords and timerWords.
const (
	StatusScheduled   = "scheduled"
	StatusReady       = "ready"
	StatusRetrying    = "retrying"
	StatusRunning     = "running"
	StatusWaiting     = "waiting"
	StatusNoWorker    = "no_worker"
	StatusDone        = "done"
	StatusStopped     = "stopped"
	StatusFailed      = "failed"
	StatusCancelled   = "cancelled"
	StatusQuarantined = "quarantined"
)

// waitingStatuses are the statuses of items that wait for their due time or for a process.
// Statements return StatusReady for all of them, because that is the place of the row.
var waitingStatuses = []string{StatusScheduled, StatusReady, StatusRetrying}

// Refine returns the status of an item. place is the status that a statement returned. attempts
// is the number of failed attempts. now is the time with which due is compared.
func Refine(place string, attempts int, due, now time.Time) string {
	switch {
	case !slices.Contains(waitingStatuses, place):
		return place
	case attempts > 0:
		return StatusRetrying
	case due.After(now):
		return StatusScheduled
	}
	return StatusReady
}

// The reasons of StatusWaiting.
const (
	WaitsForSignal   = "signal"
	WaitsForChildren = "children"
	WaitsForTurn     = "turn"
)

// placeOf splits the place of an instance into its status and the reason of a wait. Statements
// return both as one word.
func placeOf(place string) (status, waitsFor string) {
	if reason, waits := strings.CutPrefix(place, StatusWaiting+"_"); waits {
		return StatusWaiting, reason
	}
	return place, ""
}

// words maps statuses to the words of a table that uses older words.
type words map[string]string

// taskWords are the words of queues.task, which are shared with functions for a restricted
// role. timerWords are the words of timers.
var (
	taskWords  = words{StatusReady: "pending", StatusRunning: "processing", StatusDone: "completed"}
	timerWords = words{StatusReady: "pending"}
)

// stored returns the word of the table.
func (w words) stored(status string) string {
	if word, ok := w[status]; ok {
		return word
	}
	return status
}

// status returns the status for a word of the table.
func (w words) status(stored string) string {
	for status, word := range w {
		if word == stored {
			return status
		}
	}
	return stored
}

// statusOf names the columns from which the status of a row is derived.
type statusOf struct {
	place, attempts, due string
	words                words
}

// statuses adds the condition that the status of a row is one of the given statuses, unless
// there are none. now distinguishes scheduled items from ready items. If a partial index
// contains all matching rows, it also adds the condition of the index, because a planner uses
// the index only then.
func (c *conditions) statuses(of statusOf, statuses []string, now time.Time, indexes []partial) {
	if len(statuses) == 0 {
		return
	}
	var either []string
	var places, args []any
	for _, s := range statuses {
		if !slices.Contains(waitingStatuses, s) {
			places = append(places, of.words.stored(s))
		}
	}
	waits := func(s string) bool { return slices.Contains(statuses, s) }
	ready := of.words.stored(StatusReady)
	if !slices.ContainsFunc(waitingStatuses, func(s string) bool { return !waits(s) }) {
		places = append(places, ready)
	} else {
		for _, w := range []struct {
			status, condition string
			args              []any
		}{
			{StatusScheduled, of.attempts + " = 0 and " + of.due + " > ?", []any{now}},
			{StatusReady, of.attempts + " = 0 and " + of.due + " <= ?", []any{now}},
			{StatusRetrying, of.attempts + " > 0", nil},
		} {
			if waits(w.status) {
				either = append(either, of.place+" = ? and "+w.condition)
				args = append(append(args, ready), w.args...)
			}
		}
	}
	if len(places) > 0 {
		either = append(either, of.place+" in ("+placeholders(len(places))+")")
		args = append(args, places...)
	}
	c.add("("+strings.Join(either, " or ")+")", args...)
	if p, ok := within(statuses, indexes); ok {
		c.add(p.where)
		if c.flags {
			c.add(p.flag)
		}
	}
}
