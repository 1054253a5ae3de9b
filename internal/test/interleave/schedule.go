package interleave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Polling starts at a short interval, because most waits show immediately. It slows down
// for long waits, such as a deadlock's.
const (
	firstPoll = time.Millisecond
	lastPoll  = 16 * time.Millisecond
)

// state is the state of a session in its schedule.
type state int

const (
	running state = iota // its step runs, or waits for a lock
	ready                // it is before its next step
	ended
)

// participant is a session in one schedule.
type participant struct {
	session Session
	conn    *Conn
	state   state
	steps   int       // the number of started steps
	current int       // the place of the last step in the schedule
	next    footprint // what its next or running step does, as far as it is known
	err     error
}

// schedule is one order of the sessions' steps, as it is run.
type schedule struct {
	watch  func(ctx context.Context, p *participant) (waits bool, err error)
	parts  []*participant
	steps  []string
	waited bool
	did    footprint // what the last step did, including what it let others do
	group  sync.WaitGroup
}

// run runs the sessions to completion. e chooses the session of the next step.
func (s *schedule) run(ctx context.Context, e *enumerator) error {
	ctx, cancel := context.WithCancelCause(ctx)
	err := s.steer(ctx, e)
	cancel(err) // unblocks the sessions that have not ended
	s.group.Wait()
	return err
}

func (s *schedule) steer(ctx context.Context, e *enumerator) error {
	for _, p := range s.parts {
		s.start(ctx, p)
		if err := s.settle(ctx, p); err != nil {
			return err
		}
	}
	for {
		if err := s.settleAll(ctx); err != nil {
			return err
		}
		can := s.ready()
		if len(can) > 0 {
			s.begin(s.parts[e.choose(can, s.did)])
			continue
		}
		if len(s.in(running)) == 0 {
			return nil
		}
		if err := s.awaitAny(ctx); err != nil {
			return err
		}
	}
}

// start starts a session; it stops before its first step.
func (s *schedule) start(ctx context.Context, p *participant) {
	p.conn.wrote = false
	s.group.Go(func() {
		err := p.session.Run(ctx, p.conn)
		err = errors.Join(err, rollback(ctx, p.conn))
		select {
		case p.conn.arrived <- event{ended: true, err: err}:
		case <-ctx.Done():
		}
	})
}

// begin lets a session run its next step.
func (s *schedule) begin(p *participant) {
	p.steps++
	p.current = len(s.steps)
	p.state = running
	s.did = p.next
	s.steps = append(s.steps, fmt.Sprint(p.session.Name, p.steps))
	p.conn.proceed <- struct{}{}
}

// settleAll waits until each running step is done or waits for a lock. A step that
// completes may unblock a step that was checked before it, so settleAll repeats until
// nothing changes.
func (s *schedule) settleAll(ctx context.Context) error {
	for {
		before := len(s.in(running))
		for _, p := range s.in(running) {
			if err := s.settle(ctx, p); err != nil {
				return err
			}
		}
		if after := len(s.in(running)); after == before || after == 0 {
			return nil
		}
	}
}

// settle waits until the step of p is done or waits for a lock.
func (s *schedule) settle(ctx context.Context, p *participant) error {
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		if s.arrives(ctx, p, poll) {
			return nil
		}
		waits, err := s.watch(ctx, p)
		if err != nil {
			return s.explain(ctx, err)
		}
		if waits {
			s.markWaited(p)
			return nil
		}
	}
}

// awaitAny waits until one of the steps completes when all of them wait: the database ends
// a deadlock after some time.
func (s *schedule) awaitAny(ctx context.Context) error {
	for ctx.Err() == nil {
		for _, p := range s.in(running) {
			if s.arrives(ctx, p, firstPoll) {
				return nil
			}
		}
	}
	return s.explain(ctx, ctx.Err())
}

// arrives waits for the given time and reports whether the step of p is done.
func (s *schedule) arrives(ctx context.Context, p *participant, moment time.Duration) bool {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case e := <-p.conn.arrived:
		p.state, p.err, p.next = ready, e.err, e.next
		s.did = s.did.and(e.did)
		if e.ended { // with a rollback
			p.state, s.did = ended, anything
		}
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (s *schedule) markWaited(p *participant) {
	s.did = s.did.and(writes) // a read does not wait
	if p.steps > 0 && !strings.HasSuffix(s.steps[p.current], "*") {
		s.steps[p.current] += "*"
		s.waited = true
	}
}

// ready returns the indexes of the participants that are before a step.
func (s *schedule) ready() []int {
	var found []int
	for i, p := range s.parts {
		if p.state == ready {
			found = append(found, i)
		}
	}
	return found
}

// in returns the participants in a state.
func (s *schedule) in(want state) []*participant {
	var found []*participant
	for _, p := range s.parts {
		if p.state == want {
			found = append(found, p)
		}
	}
	return found
}

// explain adds the position in the schedule to an error.
func (s *schedule) explain(ctx context.Context, err error) error {
	var names []string
	for _, p := range s.in(running) {
		names = append(names, p.session.Name)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("schedule %s: %s still runs: %w", s, strings.Join(names, " and "), err)
}

func (s *schedule) String() string { return strings.Join(s.steps, " ") }

func (s *schedule) outcome() Outcome {
	o := Outcome{Schedule: s.String(), Errors: map[string]error{}}
	for _, p := range s.parts {
		if p.err != nil {
			o.Errors[p.session.Name] = p.err
		}
	}
	return o
}
