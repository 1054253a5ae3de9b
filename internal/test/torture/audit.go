package torture

import (
	"time"

	"github.com/perdure/perdure/outbox"
)

// Audit compares the recorded outcomes of the units in a history with all entries of the
// outbox, in order: rules C1, C4, C5 and C7.
func Audit(records []Record, entries []outbox.Entry) Findings {
	var f Findings
	byUnit := map[string]Record{}
	for _, r := range records {
		if r.Unit != "" {
			byUnit[r.Unit] = r
		}
	}
	auditOrder(entries, &f)
	auditRealTime(byUnit, entries, &f)
	auditAtomicity(byUnit, entries, &f)
	auditMutations(byUnit, entries, &f)
	return f
}

// auditOrder checks C1: nothing missing, nothing twice, nothing out of order.
func auditOrder(entries []outbox.Entry, f *Findings) {
	var last outbox.Stamp
	for _, e := range entries {
		if want := outbox.NewStamp(last.Incarnation(), last.Counter()+1, 0); e.Stamp != want {
			f.add("C1", "entry %s follows %s, want %s", e.Stamp, last, want)
		}
		last = e.Stamp
	}
}

// auditRealTime checks C4. In the order of the stamps, no unit may have ended before a unit
// with a smaller stamp started. It is enough to remember the latest start so far.
func auditRealTime(byUnit map[string]Record, entries []outbox.Entry, f *Findings) {
	var latest time.Duration
	var whose outbox.Entry
	for _, e := range entries {
		r, known := byUnit[e.Unit]
		if !known {
			continue // reported by C5
		}
		if r.Outcome == Acknowledged && r.Ended < latest {
			f.add("C4", "unit %s was acknowledged %s before unit %s began, but has the greater stamp: %s, %s",
				e.Unit, latest-r.Ended, whose.Unit, e.Stamp, whose.Stamp)
		}
		if r.Began > latest {
			latest, whose = r.Began, e
		}
	}
}

// auditAtomicity checks C5 as far as the outbox shows it. Verify compares the outbox with
// the tables.
func auditAtomicity(byUnit map[string]Record, entries []outbox.Entry, f *Findings) {
	count := map[string]int{}
	for _, e := range entries {
		count[e.Unit]++
		if _, known := byUnit[e.Unit]; !known {
			f.add("C5", "entry %s is of unit %s, which no process wrote", e.Stamp, e.Unit)
		}
	}
	for unit, r := range byUnit {
		n := count[unit]
		switch {
		case r.Outcome == Acknowledged && n != 1:
			f.add("C5", "unit %s (%s) was acknowledged and has %d entries", unit, r.Style, n)
		case r.Outcome == Failed && n != 0:
			f.add("C5", "unit %s (%s) failed (%v) and has %d entries", unit, r.Style, r.Err, n)
		case n > 1:
			f.add("C5", "unit %s (%s) has %d entries", unit, r.Style, n)
		}
	}
}

// auditMutations checks C7, and that an entry contains every mutation and event.
func auditMutations(byUnit map[string]Record, entries []outbox.Entry, f *Findings) {
	for _, e := range entries {
		want := e.Stamp
		for m, event := range e.Payload.All() {
			if m != nil && m.Stamp != want || event != nil && event.Stamp != want {
				f.add("C7", "mutation or event %d of entry %s has another stamp", want.User(), e.Stamp)
			}
			want = want.At(want.User() + 1)
		}
		if r, known := byUnit[e.Unit]; known && e.Payload.Len() != r.Mutations {
			f.add("C5", "unit %s recorded %d mutations and events, its entry has %d", e.Unit, r.Mutations, e.Payload.Len())
		}
	}
}
