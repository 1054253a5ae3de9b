package core

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A process that crashes does not report which work item crashed it. Poison is found by
// bisection. Items that crashed twice become suspects, and suspects run in batches
// whose size halves with every further crash. A batch that survives clears its members.
// An item that crashes alone is poison.

const (
	// suspicion is the number of crashes that make an item a suspect. After the first
	// crash all items run as before: a host that loses power crashes all of its items.
	suspicion = 2
	// conclusive is the number of crashes as the only suspect that prove an item to be
	// poison although other items crashed with it.
	conclusive = 3
	// crashDelay, times the number of earlier crashes, is the delay after a crash as the
	// only suspect. It keeps poison from crashing its processes in a tight loop.
	crashDelay = time.Second
)

// Loss describes an item whose process crashed while it ran.
type Loss struct {
	// Crashes is the number of earlier crashes.
	Crashes int
	// Suspect is true if the item ran as a suspect, with the batch limit Limit.
	Suspect bool
	Limit   int
	// Lost is the number of items that crashed with that process, this one included:
	// the suspects if the item is a suspect, otherwise the other items.
	Lost int
	// Others is the number of items that crashed with that process and are not
	// suspects. It is set if the item is a suspect.
	Others int
}

// Verdict is the consequence of a crash for an item.
type Verdict struct {
	// Crashes is the number of crashes, this one included.
	Crashes int
	// Suspect is true if the item runs as a suspect from now on. At most Limit suspects
	// run together, this one included. From 1 on, every crash as the only suspect
	// lowers Limit by one.
	Suspect bool
	Limit   int
	// Delay is the delay before the item runs again.
	Delay time.Duration
	// Quarantined is true if the item must not run again.
	Quarantined bool
}

// CrashVerdict returns the consequence of a crash. An item is quarantined once it has crashed
// maxCrashes times, at least maxCrashes-2 of them (and at least once) as the only
// suspect of its process. Other items that crashed with it may be poison that is not a
// suspect yet; then at least three crashes as the only suspect are required.
func CrashVerdict(l Loss, maxCrashes int) Verdict {
	v := Verdict{Crashes: l.Crashes + 1, Suspect: l.Suspect || l.Crashes+1 >= min(suspicion, maxCrashes)}
	if !v.Suspect {
		return v
	}
	v.Limit = max(1, (l.Lost+1)/2)
	if !l.Suspect || l.Limit > 1 || l.Lost > 1 {
		return v
	}
	v.Limit = l.Limit - 1
	v.Delay = time.Duration(l.Crashes) * crashDelay
	required := max(1, maxCrashes-suspicion)
	if l.Others > 0 {
		required = max(required, conclusive)
	}
	v.Quarantined = v.Crashes >= maxCrashes && 1-v.Limit >= required
	return v
}

// isolation is shared by all lanes of a process: only one lane at a time runs a suspect
// that must be alone.
type isolation struct {
	mu    sync.Mutex
	alone *Lane
	lanes []*Lane
}

// Lane limits the suspects of one kind that run concurrently in this process: never
// more than the smallest limit among them. It is safe for concurrent use.
type Lane struct {
	shared  *isolation
	freed   func()
	limits  map[int]int // number of running suspects with each limit
	running int
}

// NewLane returns a lane. freed is called when more suspects may be admitted.
func (ws *Workers) NewLane(freed func()) *Lane {
	shared := &isolation{}
	if ws != nil {
		shared = &ws.isolation
	}
	l := &Lane{shared: shared, freed: freed, limits: map[int]int{}}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.lanes = append(shared.lanes, l)
	return l
}

// Least returns the smallest limit with which a suspect is admitted now, or 0 if none
// is admitted.
func (l *Lane) Least() int {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	switch {
	case l.running >= l.smallest():
		return 0
	case l.running == 0 && l.shared.alone != nil:
		return 2
	}
	return l.running + 1
}

// Room returns the number of suspects that could be admitted now.
func (l *Lane) Room() int {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	return max(l.smallest()-l.running, 0)
}

// unlimited is the smallest limit if no suspects are running.
const unlimited = 1 << 30

func (l *Lane) smallest() int {
	least := unlimited
	for limit := range l.limits {
		least = min(least, limit)
	}
	return least
}

// Admit decides which of the suspects with these limits may run now, those with the
// largest limits first. Call Leave for each admitted suspect.
func (l *Lane) Admit(limits []int) []bool {
	order := make([]int, len(limits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(limits[b], limits[a]) })
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	admitted := make([]bool, len(limits))
	for _, i := range order {
		admitted[i] = l.admit(max(limits[i], 1))
	}
	return admitted
}

func (l *Lane) admit(limit int) bool {
	if l.running >= min(l.smallest(), limit) || limit == 1 && l.shared.alone != nil {
		return false
	}
	if limit == 1 {
		l.shared.alone = l
	}
	l.limits[limit]++
	l.running++
	return true
}

// Leave removes suspects that no longer run, and calls freed.
func (l *Lane) Leave(limits ...int) {
	if len(limits) == 0 {
		return
	}
	for _, lane := range l.leave(limits) {
		lane.freed()
	}
}

func (l *Lane) leave(limits []int) (freed []*Lane) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	freed = []*Lane{l}
	for _, limit := range limits {
		limit = max(limit, 1)
		if l.limits[limit]--; l.limits[limit] == 0 {
			delete(l.limits, limit)
		}
		l.running--
		if limit == 1 {
			l.shared.alone = nil
			freed = slices.Clone(l.shared.lanes)
		}
	}
	return freed
}
