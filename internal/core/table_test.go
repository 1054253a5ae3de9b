package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
)

// row is a piece of work in a table that is in memory.
type row struct {
	id       string
	due      time.Time
	token    string
	until    time.Time
	runs     int
	crashes  int
	released int
	done     bool
}

// table is a kind of work that follows the protocol, in memory.
type table struct {
	mu     sync.Mutex
	rows   []*row
	tokens int
	calls  map[string]int

	run    func(ctx context.Context, id string) error // the user's code
	extend func(ctx context.Context) error            // before an extension
	claim  func()                                     // before a claim
	give   func() error                               // before claims are returned
	down   error                                      // of Next
	errors []error
}

func newTable(n int) *table {
	t := &table{calls: map[string]int{}, run: func(context.Context, string) error { return nil }}
	for i := range n {
		t.rows = append(t.rows, &row{id: fmt.Sprintf("row-%03d", i), due: time.Now()})
	}
	return t
}

// first returns a copy of the first row.
func (t *table) first() row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.rows[0]
}

func (t *table) worker(concurrency int) *core.Worker {
	return core.NewWorker(core.Kind{
		Name: "row", Claim: t.claimRows, Begin: t.begin, Extend: t.extendRows, Release: t.release, Next: t.next, Sweep: t.sweep,
	}, core.Options{
		Concurrency: concurrency, Lease: lease, SweepEvery: time.Hour, Clock: clock.System, OnError: t.onError,
	})
}

func (t *table) called(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[name]++
}

func (t *table) count(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[name]
}

func (t *table) total() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, calls := range t.calls {
		n += calls
	}
	return n
}

func (t *table) onError(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, err)
}

func (t *table) reported() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]error(nil), t.errors...)
}

func (t *table) claimRows(_ context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	t.called("claim")
	if t.claim != nil {
		t.claim()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var claims []*core.Claim
	t.tokens++
	for _, r := range t.rows {
		if r.token != "" && !r.until.After(now) {
			r.token = ""
			r.crashes++
		}
		if r.done || r.token != "" || r.due.After(now) || len(claims) == limit {
			continue
		}
		token := fmt.Sprint("token-", t.tokens)
		claims = append(claims, &core.Claim{ID: r.id, Token: token, Work: r})
		r.token, r.until = token, now.Add(lease)
	}
	return claims, nil
}

// mine returns the row of a claim, or nil if that is lost.
func (t *table) mine(c *core.Claim) *row {
	if r := c.Work.(*row); r.token == c.Token {
		return r
	}
	return nil
}

// begin runs the user's code. A claim whose run failed is given back.
func (t *table) begin(ctx context.Context, c *core.Claim) {
	limits := core.Limits{Timeout: 24 * time.Hour, Patience: 24 * time.Hour}
	c.Call(ctx, limits, func(call context.Context) error { return t.runRow(ctx, call, c) }, func(err error) {
		if err != nil {
			t.giveBack(c, err)
		}
		c.End(err)
	})
}

func (t *table) runRow(ctx, call context.Context, c *core.Claim) error {
	err := t.run(call, c.ID)
	if cause := context.Cause(ctx); errors.Is(cause, core.ErrLost) {
		return cause
	} else if err != nil && errors.Is(cause, core.ErrStopping) {
		return t.release(ctx, []*core.Claim{c})
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.mine(c)
	if r == nil {
		return core.ErrLost
	}
	r.runs++
	r.done, r.token = true, ""
	return nil
}

func (t *table) extendRows(ctx context.Context, claims []*core.Claim, lease time.Duration) (lost []*core.Claim, err error) {
	t.called("extend")
	t.mu.Lock()
	before := t.extend
	t.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range claims {
		if i > 0 && claims[i-1].ID >= c.ID {
			return nil, errors.New("claims are not in the order of their ids")
		}
		if r := t.mine(c); r != nil {
			r.until = time.Now().Add(lease)
			continue
		}
		lost = append(lost, c)
	}
	return lost, nil
}

func (t *table) release(_ context.Context, claims []*core.Claim) error {
	t.called("release")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range claims {
		if r := t.mine(c); r != nil {
			r.token = ""
			r.released++
		}
	}
	return nil
}

func (t *table) giveBack(c *core.Claim, cause error) {
	t.mu.Lock()
	before := t.give
	if r := t.mine(c); r != nil && !core.Immediate(cause) {
		r.due = time.Now().Add(core.Postponement(func() float64 { return 0 }))
	}
	t.mu.Unlock()
	if before == nil || before() == nil {
		_ = t.release(context.Background(), []*core.Claim{c}) // it has no errors
	}
}

func (t *table) next(context.Context) (time.Duration, bool, error) {
	t.called("next")
	t.mu.Lock()
	defer t.mu.Unlock()
	var wait time.Duration
	ok := false
	if t.down != nil {
		return 0, false, t.down
	}
	for _, r := range t.rows {
		if d := time.Until(r.due); !r.done && r.token == "" && (!ok || d < wait) {
			wait, ok = d, true
		}
	}
	return wait, ok, nil
}

func (t *table) sweep(context.Context) error {
	t.called("sweep")
	return nil
}

// sums returns how many rows are done and how often rows were run.
func (t *table) sums() (done, runs, crashes, released int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		if r.done {
			done++
		}
		runs += r.runs
		crashes += r.crashes
		released += r.released
	}
	return done, runs, crashes, released
}

// blocker is user code that blocks until it is let go.
type blocker struct {
	begun   chan string
	release chan struct{}
}

func newBlocker() *blocker {
	return &blocker{begun: make(chan string, 100), release: make(chan struct{})}
}

// run waits to be let go, whatever becomes of its context.
func (b *blocker) run(_ context.Context, id string) error {
	b.begun <- id
	<-b.release
	return nil
}

// patient waits to be let go or for its context.
func (b *blocker) patient(ctx context.Context, id string) error {
	b.begun <- id
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
