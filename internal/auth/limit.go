package auth

import (
	"container/list"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// LimitedError reports that an address has sent too many invalid credentials.
type LimitedError struct {
	// After is the time that the address has to wait.
	After time.Duration
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many failed attempts to authenticate, wait %v", e.After)
}

// maxTracked is the number of addresses, and the number of valid credentials, that are
// remembered. The least recently seen ones are evicted.
const maxTracked = 10_000

// limiter bounds the number of invalid credentials that an address can try. Credentials
// that were valid before are always checked. So a client cannot lock out other clients with
// the same address, behind a proxy.
type limiter struct {
	mu        sync.Mutex
	burst     int
	every     time.Duration
	addresses *recent[netip.Prefix, *rate.Limiter]
	good      *recent[[32]byte, struct{}]
}

func newLimiter(burst int, every time.Duration) *limiter {
	return &limiter{
		burst: burst, every: every,
		addresses: newRecent[netip.Prefix, *rate.Limiter](maxTracked), good: newRecent[[32]byte, struct{}](maxTracked),
	}
}

// admit refuses a credential from an address that has no attempts left, unless the
// credential was valid before.
func (l *limiter) admit(from netip.Prefix, hash [32]byte, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.good.get(hash); known {
		return nil
	}
	if left, known := l.addresses.get(from); known && left.TokensAt(now) < 1 {
		return &LimitedError{After: l.every}
	}
	return nil
}

// fail counts an invalid credential and returns the error for it.
func (l *limiter) fail(from netip.Prefix, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, known := l.addresses.get(from)
	if !known {
		left = rate.NewLimiter(rate.Every(l.every), l.burst)
		l.addresses.put(from, left)
	}
	if !left.AllowN(now, 1) {
		return &LimitedError{After: l.every}
	}
	return ErrUnauthenticated
}

// succeed remembers a valid credential.
func (l *limiter) succeed(hash [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good.put(hash, struct{}{})
}

// source returns the address of a request's sender; for IPv6, the network of one customer.
// It ignores headers that proxies set.
func source(r *http.Request) netip.Prefix {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := address.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // the bits fit
	return prefix
}

// recent is a map of limited size that evicts the least recently used entry.
type recent[K comparable, V any] struct {
	max   int
	order *list.List // of entries, most recently used first
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](max int) *recent[K, V] {
	return &recent[K, V]{max: max, order: list.New(), byKey: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	e, ok := r.byKey[key]
	if !ok {
		var none V
		return none, false
	}
	r.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

func (r *recent[K, V]) put(key K, value V) {
	if e, ok := r.byKey[key]; ok {
		e.Value = entry[K, V]{key, value}
		r.order.MoveToFront(e)
		return
	}
	r.byKey[key] = r.order.PushFront(entry[K, V]{key, value})
	if r.order.Len() > r.max {
		oldest := r.order.Back()
		delete(r.byKey, oldest.Value.(entry[K, V]).key)
		r.order.Remove(oldest)
	}
}
