package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// checkAge is the age up to which a check of a credential is valid for all streams that
	// were opened with it.
	checkAge = 2 * time.Second
	// maxRecent is the number of cached checks.
	maxRecent = 10_000
)

// checks caches recent checks of credentials, so that many streams of one credential cost
// one query.
type checks struct {
	mu  sync.Mutex
	all map[[32]byte]check
}

type check struct {
	at  time.Time
	who Principal
	err error
}

func (c *checks) get(hash [32]byte, now time.Time) (check, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.all[hash]
	return last, ok && now.Sub(last.at) < checkAge && !now.Before(last.at)
}

func (c *checks) put(hash [32]byte, last check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxRecent {
		c.all = map[[32]byte]check{}
	}
	c.all[hash] = last
}

// Recheck returns the sender of a request that is still in flight: a stream or a socket. It
// fails with ErrUnauthenticated if the credential is no longer valid, or with an error of
// the database, which does not concern the credential. It does not count as a failure of
// the client. Unless fresh is set, the result may be 2 seconds old.
func (a *Access) Recheck(ctx context.Context, r *http.Request, fresh bool) (Principal, error) {
	secret, given := credential(r)
	if !given {
		return a.recheckLocal(ctx, r, fresh)
	}
	hash, now := hashOf(secret), time.Now()
	if last, ok := a.checks.get(hash, now); ok && !fresh {
		return last.who, last.err
	}
	t, good, err := a.find(ctx, hash)
	if err != nil {
		return Principal{}, err
	}
	last := check{at: now, err: ErrUnauthenticated}
	if good {
		last.who, last.err = principal(t)
	}
	a.checks.put(hash, last)
	return last.who, last.err
}

// recheckLocal is Recheck for a request without credentials. All such requests from this
// host share one check, under a hash that no credential has.
func (a *Access) recheckLocal(ctx context.Context, r *http.Request, fresh bool) (Principal, error) {
	if !fromHere(r) {
		return Principal{}, ErrUnauthenticated
	}
	now := time.Now()
	if last, ok := a.checks.get([32]byte{}, now); ok && !fresh {
		return last.who, last.err
	}
	who, err := a.local(ctx, r)
	if err == nil || errors.Is(err, ErrUnauthenticated) {
		a.checks.put([32]byte{}, check{at: now, who: who, err: err})
	}
	return who, err
}
