package wake_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/wake"
)

// remote is a database that carries notifications, in memory.
type remote struct {
	mu       sync.Mutex
	notified [][]string
	listens  int
	heard    func(string)
	broken   bool          // listening fails
	lost     chan struct{} // closed when the connection is lost
}

func (r *remote) Notify(_ context.Context, topics []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(topics)
	r.notified = append(r.notified, topics)
	return nil
}

func (r *remote) Listen(ctx context.Context, ready func(), heard func(string)) error {
	r.mu.Lock()
	r.listens++
	if r.broken {
		r.mu.Unlock()
		return errors.New("no connection")
	}
	lost := make(chan struct{})
	r.heard, r.lost = heard, lost
	r.mu.Unlock()
	ready()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return errors.New("connection lost")
	}
}

func (r *remote) sent() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]string(nil), r.notified...)
}

// ear counts what a subscriber is told.
type ear struct {
	mu  sync.Mutex
	due []time.Time
}

func (e *ear) hear(due time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due = append(e.due, due)
}

// at returns the due time of the n-th call.
func (e *ear) at(n int) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.due[n]
}

func (e *ear) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.due)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func TestSubscribersHearTheirTopicUntilTheyCancel(t *testing.T) {
	hub := wake.New(nil, nil)
	defer hub.Close()
	var a, b ear
	cancel := hub.Subscribe("x", a.hear)
	hub.Subscribe("y", b.hear)
	due := time.Unix(1, 0)
	hub.Publish("x", due)
	hub.Notify("x", due)
	equal(t, "heard", a.count(), 2)
	equal(t, "due", a.due[0], due)
	hub.PublishAll()
	equal(t, "heard", a.count(), 3)
	equal(t, "due", a.due[2], time.Time{})
	cancel()
	hub.Publish("x", due)
	equal(t, "heard", a.count(), 3)
	equal(t, "heard by the other", b.count(), 1)
}

func TestNotificationsGoOutAtOnceAndThenAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		hub := wake.New(r, nil)
		defer hub.Close()
		hub.Publish("a", time.Time{})
		synctest.Wait()
		equal(t, "notifications", len(r.sent()), 1)
		for range 1000 { // a burst is one more
			hub.Publish("a", time.Time{})
			hub.Publish("b", time.Time{})
		}
		hub.Notify("c", time.Time{}) // stays here
		synctest.Wait()
		equal(t, "notifications within the pace", len(r.sent()), 1)
		pass(time.Second)
		sent := r.sent()
		equal(t, "notifications", len(sent), 2)
		if !slices.Equal(sent[1], []string{"a", "b"}) {
			t.Fatalf("the second one is of %v", sent[1])
		}
	})
}

// A process that commits and ends at once must be heard.
func TestCloseSaysWhatIsLeftToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		hub := wake.New(r, nil)
		hub.Publish("a", time.Time{})
		hub.Publish("b", time.Time{})
		hub.Close()
		var topics []string
		for _, sent := range r.sent() {
			topics = append(topics, sent...)
		}
		if !slices.Equal(topics, []string{"a", "b"}) {
			t.Fatalf("notified were %v", topics)
		}
		hub.Publish("c", time.Time{}) // too late, and no harm
		hub.Close()
	})
}

// What is committed before a listener hears is found because everybody looks
// when it begins to.
func TestSubscribersLookWhenListeningBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		hub := wake.New(r, nil)
		defer hub.Close()
		var e ear
		cancel := hub.Subscribe("a", e.hear)
		synctest.Wait()
		equal(t, "heard", e.count(), 1)
		r.heard("a")
		r.heard("of others")
		equal(t, "heard", e.count(), 2)

		r.mu.Lock()
		r.broken = true
		close(r.lost)
		r.mu.Unlock()
		pass(10 * time.Second)
		equal(t, "heard while nobody listens", e.count(), 2)
		hub.Publish("a", time.Time{}) // this process needs no database for it
		equal(t, "heard", e.count(), 3)
		r.mu.Lock()
		r.broken = false
		before := r.listens
		r.mu.Unlock()
		pass(2 * time.Second)
		equal(t, "heard after it listens again", e.count(), 4)
		if before < 5 || before > 12 {
			t.Fatalf("it tried to listen %d times in 10 s", before)
		}

		cancel()
		synctest.Wait()
		before = r.listens
		pass(time.Hour)
		equal(t, "listens without subscribers", r.listens, before)
	})
}

// pass lets time pass: virtual time, in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }

// watched is a database whose commits can be watched, in memory.
type watched struct {
	changes chan struct{}
	mu      sync.Mutex
	starts  int
}

func (w *watched) Watch(ctx context.Context, changed func()) error {
	w.mu.Lock()
	w.starts++
	w.mu.Unlock()
	changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok := <-w.changes:
			if !ok {
				return errors.New("cannot be read")
			}
			changed()
		}
	}
}

func TestACommitOfAnotherProcessReachesAllSubscribersWithAnUnknownTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{changes: make(chan struct{})}
		hub := wake.New(nil, w)
		defer hub.Close()
		synctest.Wait()
		equal(t, "watches without subscribers", w.starts, 0)
		var a, b ear
		defer hub.Subscribe("a", a.hear)()
		defer hub.Subscribe("b", b.hear)()
		synctest.Wait()
		before := [2]int{a.count(), b.count()}
		w.changes <- struct{}{}
		synctest.Wait()
		equal(t, "heard", [2]int{a.count(), b.count()}, [2]int{before[0] + 1, before[1] + 1})
		equal(t, "due", a.due[len(a.due)-1], wake.Unknown)
		hub.Publish("a", time.Time{}) // needs no watcher
		equal(t, "heard", a.count(), before[0]+2)

		starts := w.starts
		close(w.changes)
		pass(2500 * time.Millisecond)
		w.mu.Lock()
		equal(t, "watches after it failed", w.starts > starts, true)
		w.mu.Unlock()
	})
}

// Transactions of SQL functions that commit shortly after a notification send none.
func TestSubscribersKeepLookingAfterANotificationOfSQL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		hub := wake.New(r, nil)
		defer hub.Close()
		var a ear
		hub.Subscribe("x", a.hear)
		synctest.Wait()
		began := a.count() // it looks when it begins to listen
		r.heard("sql")
		equal(t, "heard", a.count(), began+1)
		equal(t, "due", a.at(began), wake.Unknown)
		time.Sleep(40 * time.Millisecond)
		equal(t, "heard", a.count(), began+2)
		r.heard("sql") // the looks begin again; the next one is near
		equal(t, "heard", a.count(), began+2)
		time.Sleep(time.Hour)
		equal(t, "heard", a.count(), began+6) // the near one, and three
		r.heard("sql")
		equal(t, "heard", a.count(), began+7)
	})
}
