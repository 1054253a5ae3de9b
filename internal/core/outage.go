package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Outage records whether this process could reach the database, so that it does not
// take the work of other processes that could not renew their leases either. The zero
// value has seen no outage.
type Outage struct {
	mu      sync.Mutex
	failing bool
	last    time.Time // the last success
	back    time.Time // since then there was no failure
	first   time.Time // the first success after the outage
}

// Failed records that the database could not be reached.
func (o *Outage) Failed(now time.Time, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.failing && now.Sub(o.back) > lease {
		o.first = time.Time{}
	}
	o.failing = true
}

// Succeeded records that it could be reached.
func (o *Outage) Succeeded(now time.Time, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing {
		if o.first.IsZero() || now.Sub(o.last) > lease/beats {
			o.first = now
		}
		o.failing, o.back = false, now
	}
	o.last = now
}

// Over reports whether expired leases of other processes may be reaped: the database
// has been back for as long as a heartbeat takes, so that processes which are alive
// have renewed theirs. Failures that come and go delay this by a lease at most.
func (o *Outage) Over(now time.Time, lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch bounded := !o.first.IsZero() && now.Sub(o.first) >= lease; {
	case o.failing:
		return bounded && now.Sub(o.last) <= lease/beats
	case o.back.IsZero():
		return true
	default:
		return bounded || now.Sub(o.back) >= lease/beats
	}
}

// Note records the result of a transaction that wrote. Errors that say nothing of the
// database's presence change nothing.
func (o *Outage) Note(err error, now time.Time, lease time.Duration) {
	switch {
	case err == nil:
		o.Succeeded(now, lease)
	case sqldb.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		o.Failed(now, lease)
	}
}

// Expired separates expired claims. Those that this process made, mine, do not count as
// crashes: it is alive. Those of other processes do, unless they could not renew their
// leases because of an outage; then others is empty.
func Expired[C any](claims []C, worker func(C) string, self string, mayReap bool) (mine, others []C) {
	for _, c := range claims {
		switch {
		case worker(c) == self:
			mine = append(mine, c)
		case mayReap:
			others = append(others, c)
		}
	}
	return mine, others
}
