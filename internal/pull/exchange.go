package pull

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
)

const (
	// commitWait is the longest time for which a call waits for the commit of its outcomes.
	commitWait = 20 * time.Second
	// claimWait is the time for which a call with outcomes, or without a hold, waits for work.
	claimWait = 20 * time.Millisecond
)

// Exchange commits outcomes and returns work. Only a call without outcomes is held until there is
// work.
func (b *Broker) Exchange(ctx context.Context, a Ask) (Answer, error) {
	s, err := b.find(a.Session, a.Principal)
	if err != nil {
		return Answer{}, err
	}
	if a.Max < 0 || len(a.Outcomes) > maxBatch {
		return Answer{}, fault.Invalidf("exchange", "must have a max that is not negative and at most %d outcomes", maxBatch)
	}
	a.Max = min(a.Max, maxBatch)
	var answer Answer
	if len(a.Outcomes) > 0 {
		if answer.Results, err = b.decide(ctx, s, a.Outcomes); err != nil {
			return Answer{}, err
		}
		a.Hold = 0
	}
	hold := max(min(a.Hold, maxHold), claimWait)
	var got []*task
	if repeated, ok := b.repeated(s, a.Exchange); ok {
		got = repeated
	} else if a.Max > 0 {
		if got, err = b.fetch(ctx, s, a, hold); err != nil {
			return Answer{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range got {
		answer.Work = append(answer.Work, t.work)
	}
	answer.Cancel, answer.State = s.cancels(), b.state()
	return answer, nil
}

// repeated returns the work of an earlier call with the same id that the worker still has.
func (b *Broker) repeated(s *session, exchange string) ([]*task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range s.answers {
		if exchange != "" && r.exchange == exchange {
			return slices.DeleteFunc(slices.Clone(r.work), func(t *task) bool { return s.tasks[t.work.Token] != t || t.digest != "" }), true
		}
	}
	return nil, false
}

// fetch waits for work. If the client disconnects before it has an answer, its work is returned.
func (b *Broker) fetch(ctx context.Context, s *session, a Ask, hold time.Duration) ([]*task, error) {
	w := &waiter{session: s, max: a.Max, ready: make(chan struct{}), over: make(chan struct{})}
	wake, open := b.enter(w)
	if !open {
		return nil, ErrSession
	}
	for _, name := range wake {
		b.runners.wake(name)
	}
	timer := clock.System.NewTimer(hold)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C():
	case <-ctx.Done():
	case <-w.over:
		return nil, ErrSession
	}
	b.mu.Lock()
	b.leave(w)
	w.answer()
	got := w.got
	if ctx.Err() == nil && len(got) > 0 && a.Exchange != "" {
		s.answers = append(s.answers, repeat{a.Exchange, got})
		if len(s.answers) > kept {
			s.answers = slices.Delete(s.answers, 0, len(s.answers)-kept)
		}
	}
	b.mu.Unlock()
	if ctx.Err() != nil {
		for _, t := range got {
			t.finish(verdict{err: work.ErrReturned})
		}
		return nil, ctx.Err()
	}
	return got, nil
}

// enter adds a call that waits. It returns the runners that had no room before, or false if the
// session has ended. An earlier call of the session that still waits is answered.
func (b *Broker) enter(w *waiter) (wake []string, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := w.session
	if b.sessions[s.id] != s {
		return nil, false
	}
	if old := s.waiter; old != nil {
		b.leave(old)
		old.answer()
	}
	if b.stopping || slices.ContainsFunc(s.cancels(), func(c Cancel) bool { return s.tasks[c.Token].digest == "" }) {
		w.answer()
		return nil, true
	}
	for name := range s.runners {
		if b.free(func(other *session) bool { return other.runners[name] }) == 0 {
			wake = append(wake, name)
		}
	}
	s.waiter = w
	b.waiters = append(b.waiters, w)
	if len(b.pending) > 0 {
		b.deal()
	}
	return wake, true
}

// decide passes outcomes to the handlers that wait for them, and waits until they are committed.
func (b *Broker) decide(ctx context.Context, s *session, outcomes []Outcome) ([]Result, error) {
	results := make([]Result, len(outcomes))
	waits := map[int]*task{}
	var unknown []string
	digests := make([]string, len(outcomes))
	for i, o := range outcomes {
		digests[i] = digestOf(o.Body)
		status, t, detail := b.receive(s, o, digests[i])
		results[i] = Result{Token: o.Token, Status: status, Detail: detail}
		switch {
		case t != nil:
			waits[i] = t
		case status == "":
			unknown = append(unknown, o.Token)
		}
	}
	timer := clock.System.NewTimer(commitWait)
	defer timer.Stop()
	for i, t := range waits {
		select {
		case <-t.ended:
			status, err := t.result()
			if err != nil {
				unknown = append(unknown, t.work.Token)
				continue
			}
			if results[i].Status == Duplicate && status == Stale || results[i].Status == "" {
				results[i].Status = status
			}
		case <-timer.C():
			results[i].Status = Pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return results, b.recall(ctx, results, digests, unknown)
}

// receive passes one outcome to its handler. It returns the task whose end decides about the
// status. Without a task and a status, the token is not known here.
func (b *Broker) receive(s *session, o Outcome, digest string) (status string, t *task, detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t = b.tasks[o.Token]
	switch {
	case t == nil:
		return "", nil, ""
	case t.session == nil || t.session.principal != s.principal:
		return Stale, nil, "the work belongs to another worker"
	case t.digest == digest:
		return Duplicate, t, ""
	case t.digest != "":
		return Conflict, nil, "another outcome was sent before"
	}
	outcome, err := t.decode(o.Body)
	if err != nil {
		return Invalid, nil, err.Error()
	}
	t.digest = digest
	failure, _ := outcome.(error)
	if !t.finish(verdict{outcome: outcome, digest: digest, err: failure}) {
		return Stale, nil, "the work was returned"
	}
	return "", t, ""
}

// recall finds the results of outcomes whose tokens are not known here, by their receipts.
func (b *Broker) recall(ctx context.Context, results []Result, digests []string, unknown []string) error {
	if len(unknown) == 0 {
		return nil
	}
	receipts := map[string]string{}
	err := unit.Once(ctx, b.rt.DB, sqldb.Read, func(tx sqldb.Tx) error {
		return tx.Run(ctx, b.rt.Store.Receipts(unknown, func(r store.Receipt) { receipts[r.Token] = r.Digest }))
	})
	if err != nil {
		return err
	}
	for i := range results {
		if results[i].Status != "" {
			continue
		}
		digest, found := receipts[results[i].Token]
		switch {
		case !found:
			results[i].Status = Stale
		case digest == digests[i]:
			results[i].Status = Duplicate
		default:
			results[i].Status, results[i].Detail = Conflict, "another outcome was committed before"
		}
	}
	return nil
}

// digestOf returns a hash of an outcome.
func digestOf(body json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil {
		compact.Write(body)
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}
