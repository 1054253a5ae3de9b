package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Outage records whether this process could reach the database. After an outage other
// processes could not renew their leases either, so their work must not be claimed. The
// zero value has seen no outage.
type Outage struct {
	mu      sync.Mutex
	failing bool
	last    time.Time // time of the last success
	back    time.Time // start of the current period without failures
	first   time.Time // time of the first success after the outage
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

// Succeeded records that the database could be reached.
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
// has been available for at least one heartbeat interval, so that live processes have
// renewed their leases. Intermittent failures delay this by at most one lease.
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

// Note records the result of a transaction that wrote. Errors that are unrelated to the
// availability of the database are ignored.
func (o *Outage) Note(err error, now time.Time, lease time.Duration) {
	switch {
	case err == nil:
		o.Succeeded(now, lease)
	case sqldb.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		o.Failed(now, lease)
	}
}

// Expired separates expired claims. The claims of this process, mine, do not count as
// crashes: the process is alive. The claims of other processes do, unless an outage may
// have prevented the renewal of their leases; then others is empty.
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
