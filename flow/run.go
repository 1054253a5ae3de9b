package flow

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
)

// Limits of a journal. A function that exceeds one of them waits until a process with higher
// limits runs it.
const (
	// MaxRows is the maximum number of rows of a journal. Again starts with an empty journal.
	MaxRows = 10_000
	// MaxBytes is the maximum size of the results of a journal.
	MaxBytes = 16 << 20
)

// maxKey is the maximum length of a key in bytes: the path of the branch, the name and the
// occurrence.
const maxKey = 500

// Run is one branch of a running function. Each call has a name, which identifies it together
// with the branch and the number of calls with the same name before. A Run is not a
// context.Context: only steps have one.
type Run struct {
	root   *root
	path   string
	counts map[string]int
	// cursor is the number of recorded calls of the branch that were visited.
	cursor int
	inStep bool
	undos  []undo
}

// ID returns the id of the instance.
func (r *Run) ID() string { return r.root.session.Instance().ID }

// root has the data that the branches of a run share.
type root struct {
	session journal.Session
	ctx     context.Context
	cancel  context.CancelFunc
	// tolerant is true if the journal is of an earlier version: calls are matched by name only.
	tolerant bool
	// cancelled is true if the instance was cancelled.
	cancelled bool
	// generation counts how often the function started again with an empty journal.
	generation int
	slots      chan struct{} // limits the steps that run concurrently

	commits  sync.Mutex // serializes commits
	branches sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // a branch has ended, or the run has
	rows    map[string]store.JournalRow
	order   map[string][]string // the recorded calls of each branch, in order
	visited map[string]bool     // the recorded calls that were made
	seq     int
	bytes   int
	pending journal.Progress
	inbox   []store.Signal
	waits   []wait
	active  int  // branches that neither wait nor are joined
	ended   bool // the run unwinds
	// decided is the decision of the run, until the session has it.
	decided *journal.End
	undoing bool
	// compensated is true if compensation was registered, and it runs.
	compensated bool
	live        []*branch
}

// parallel is the maximum number of steps of one instance that run concurrently.
const parallel = 64

func newRoot(s journal.Session, tolerant bool) *root {
	r := &root{session: s, tolerant: tolerant, rows: map[string]store.JournalRow{}, order: map[string][]string{}, visited: map[string]bool{}, inbox: s.Inbox(), active: 1, slots: make(chan struct{}, parallel)}
	r.ctx, r.cancel = context.WithCancel(s.Context())
	r.changed = sync.NewCond(&r.mu)
	r.cancelled = s.Instance().CancelReason != nil
	r.load(s.Rows())
	return r
}

// load indexes the journal.
func (r *root) load(rows []store.JournalRow) {
	slices.SortFunc(rows, func(a, b store.JournalRow) int { return cmp.Compare(a.Seq, b.Seq) })
	rows = r.reopened(rows)
	seen := map[string]bool{}
	for _, row := range rows {
		r.rows[row.Key] = row
		r.seq = max(r.seq, row.Seq)
		r.bytes += len(edge.Value(row.Result))
		if row.Key == generationKey {
			r.generation = row.Attempt
			r.tolerant = r.tolerant || row.Result != nil
			continue
		}
		base := strings.TrimRight(row.Key, "!=^")
		if row.Kind == store.JournalFailure || row.Kind == store.JournalOnce || strings.HasPrefix(row.Key, undoMark) || seen[base] {
			continue
		}
		seen[base] = true
		path := base[:strings.LastIndexByte(base, '/')+1]
		r.order[path] = append(r.order[path], base)
	}
	r.inbox = slices.DeleteFunc(slices.Clone(r.inbox), func(g store.Signal) bool {
		if g.Name == Resume {
			r.pending.Consumed = append(r.pending.Consumed, g.Seq)
		}
		return g.Name == Resume
	})
}

const (
	// generationKey is the key of the row that counts the generations of a journal.
	generationKey = "@"
	// undoMark begins the keys of compensation.
	undoMark = "~"
)

// close ends the branches, and gives the decision to the session. Branches may be committing until
// then: what a failed commit has not written is part of the decision.
func (r *root) close() {
	r.mu.Lock()
	r.ended = true
	r.changed.Broadcast()
	r.mu.Unlock()
	r.cancel()
	r.branches.Wait()
	r.hand(r.session.End)
}

// hand gives the decision to the session, once.
func (r *root) hand(give func(journal.End)) {
	r.mu.Lock()
	e := r.decided
	if e != nil {
		r.decided = nil
		e.Progress, r.pending = r.pending, journal.Progress{}
	}
	r.mu.Unlock()
	if e != nil {
		give(*e)
	}
}

// decide sets the decision of the run, if there is none. The lock must be held.
func (r *root) decide(e journal.End) {
	if r.ended {
		return
	}
	r.ended, r.decided = true, &e
	r.cancel()
	r.changed.Broadcast()
}

// unwind ends the goroutine because the run has ended. The lock must be held.
func (r *root) unwind() {
	r.mu.Unlock()
	runtime.Goexit()
}

// end sets the decision of the run and ends the goroutine. The lock must be held.
func (r *root) end(e journal.End) {
	r.decide(e)
	r.unwind()
}

// enter begins a call: it returns its key, and whether it is recorded. The lock is held when it
// returns.
func (r *Run) enter(name string, kinds ...store.JournalKind) (key string, recorded bool) {
	if r.inStep {
		panic("flow: a durable call was made inside a step")
	}
	r.root.mu.Lock()
	if r.root.ended {
		r.root.unwind()
	}
	key = r.key(name)
	row, recorded := r.root.rows[key]
	if woken, ok := r.root.rows[key+"="]; ok && !recorded {
		row, recorded = woken, true
	}
	left := r.root.order[r.path][r.cursor:]
	switch {
	case recorded && !slices.Contains(kinds, row.Kind):
		r.root.diverged("call %s is another kind of call than the recorded one", key)
	case r.root.tolerant:
		if recorded {
			r.root.visited[key] = true
		}
	case recorded && (len(left) == 0 || left[0] != key):
		r.root.diverged("call %s was made where %s is recorded", key, next(left))
	case recorded:
		r.cursor++
		r.root.visited[key] = true
	case len(left) > 0 && !r.root.cancelled:
		r.root.diverged("call %s is not recorded, and was made where %s is recorded", key, next(left))
	}
	return key, recorded
}

func next(left []string) string {
	if len(left) == 0 {
		return "nothing"
	}
	return left[0]
}

// last reports whether no recorded call of the branch follows the current one. The lock must be
// held.
func (r *Run) last() bool {
	return r.root.tolerant || r.cursor >= len(r.root.order[r.path])
}

// key returns the key of the next call with a name. The lock must be held.
func (r *Run) key(name string) string {
	if err := edge.Name("name of a call", name); err != nil {
		r.root.fail(err)
	}
	if strings.ContainsAny(name, "/#!=^~@") {
		r.root.fail(fault.Invalidf("name of a call", "must not contain any of / # ! = ^ ~ @, got %q", name))
	}
	return r.keyOf(name)
}

func (r *Run) keyOf(name string) string {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[name]++
	key := r.path + name + "#" + strconv.Itoa(r.counts[name])
	if len(key) > maxKey {
		r.root.fail(fault.Invalidf("key of a call", "must have at most %d bytes, got %d: %s", maxKey, len(key), key[:80]))
	}
	return key
}

// fail finishes the instance because of a mistake in the function. The lock must be held.
func (r *root) fail(err error) { r.end(journal.End{Kind: journal.Failed, Err: err}) }

// record adds a row. The lock must be held.
func (r *root) record(row store.JournalRow) {
	r.seq++
	row.Seq = r.seq
	r.rows[row.Key] = row
	r.bytes += len(edge.Value(row.Result))
	r.pending.Rows = append(r.pending.Rows, row)
	if len(r.rows) > MaxRows || r.bytes > MaxBytes {
		r.diverged("the journal has %d rows and %d bytes; the limits are %d rows and %d bytes", len(r.rows), r.bytes, MaxRows, MaxBytes)
	}
}

// flush commits what is pending. The lock must not be held.
func (r *root) flush() {
	r.commits.Lock()
	defer r.commits.Unlock()
	p := r.takePending()
	if p.Empty() {
		return
	}
	if err := r.session.Commit(p); err != nil {
		r.abort()
	}
}

// takePending returns what is to be committed. After the end of the run, that belongs to its
// decision, and the goroutine ends: a commit without it would leave a gap in the journal. The
// lock of commits must be held.
func (r *root) takePending() journal.Progress {
	r.mu.Lock()
	if r.ended {
		r.unwind()
	}
	defer r.mu.Unlock()
	p := r.pending
	r.pending = journal.Progress{}
	return p
}

// abort ends the goroutine because the claim was lost.
func (r *root) abort() {
	r.mu.Lock()
	r.ended = true
	r.cancel()
	r.changed.Broadcast()
	r.unwind()
}

// lost ends the goroutine if the claim is lost or the process is stopping.
func (r *root) lost() {
	if r.session.Context().Err() == nil && r.ctx.Err() == nil {
		return
	}
	r.mu.Lock()
	r.end(journal.End{Kind: journal.Unwound})
}

// now returns the time of this process, or the due time of the instance if the clock of this
// process is behind.
func (r *root) now() time.Time {
	now, due := r.session.Clock().Now(), r.session.Instance().Due
	if due.After(now) {
		return due
	}
	return now
}

// panicked leaves the decision to the retry policy of the definition.
func (r *root) panicked(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decide(journal.End{Kind: journal.Panicked, Err: err})
}

// finish decides how the instance finishes after the function has returned.
func (r *root) finish(run *Run, out any, err error) {
	var again *againError
	if errors.As(err, &again) {
		r.again(again)
	}
	var stop *stopError
	end := journal.End{Kind: journal.Failed, Err: err}
	switch {
	case err == nil:
		raw, err := edge.Marshal("result", out, r.session.Limit())
		if err == nil {
			r.complete()
			r.end(journal.End{Kind: journal.Done, Result: string(raw)})
		}
		end.Err = err
	case errors.As(err, &stop):
		end.Kind = journal.Stopped
	case r.cancelled && errors.Is(err, ErrCancelled):
		end.Kind, end.Err = journal.Cancelled, errors.New(*r.session.Instance().CancelReason)
	}
	if !r.cancelled {
		r.mu.Lock()
		r.unvisited()
		r.mu.Unlock()
	}
	failed := r.undo(run)
	r.mu.Lock()
	if failed != nil {
		end.Kind, end.Err = journal.Failed, errors.Join(end.Err, failed)
	} else {
		r.undone()
	}
	r.end(end)
}

// complete locks the run and checks that all recorded calls were made.
func (r *root) complete() {
	r.mu.Lock()
	r.unvisited()
}

// again starts the function again, with an empty journal.
func (r *root) again(a *againError) {
	r.complete()
	r.pending.Rows = []store.JournalRow{{Key: generationKey, Kind: store.JournalValue, Attempt: r.generation + 1, Began: r.now(), Ended: r.now()}}
	r.end(journal.End{Kind: journal.Again, Input: a.input})
}

// Key returns a key for the idempotency of a step's effect: the same for all attempts of the
// step, and different for every other step of every instance. It panics if ctx is not the context
// of a step.
func Key(ctx context.Context) string {
	s, ok := ctx.Value(stepKey{}).(stepInfo)
	if !ok {
		panic("flow: Key needs the context of a step")
	}
	return s.key
}

// Attempt returns the number of the attempt of a step, from 1.
func Attempt(ctx context.Context) int {
	s, _ := ctx.Value(stepKey{}).(stepInfo)
	return s.attempt
}

type (
	stepKey  struct{}
	stepInfo struct {
		key     string
		attempt int
	}
)

// derived returns an id that depends on the instance, the generation of its journal and a key.
func (r *root) derived(key string) string {
	of, err := uuid.Parse(r.session.Instance().ID)
	if err != nil {
		of = uuid.NameSpaceOID
	}
	return uuid.NewSHA1(of, []byte(strconv.Itoa(r.generation)+"/"+key)).String()
}
