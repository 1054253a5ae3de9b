package wake_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/wake"
)

// fallible is a remote whose notifications arrive unless it is deaf.
type fallible struct {
	remote
	deaf    bool
	commits int
	asked   int
}

func (f *fallible) Notify(ctx context.Context, topics []string) error {
	_ = f.remote.Notify(ctx, topics)
	f.mu.Lock()
	heard := f.heard
	if f.deaf {
		heard = nil
	}
	f.mu.Unlock()
	for _, topic := range topics {
		if heard != nil {
			heard(topic)
		}
	}
	return nil
}

func (f *fallible) Commits(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return fmt.Sprint(f.commits), nil
}

// change sets whether notifications get lost.
func (f *fallible) change(deaf bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = deaf
}

// commit commits in another process. Its notification is lost.
func (f *fallible) commit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
}

// polls returns how often commits were asked for since the last call.
func (f *fallible) polls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked = 0 }()
	return f.asked
}

func TestAHubWhoseNotificationsArriveDoesNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fallible{}
		hub := wake.New(r, nil)
		defer hub.Close()
		var e ear
		hub.Subscribe("x", e.hear)
		pass(10 * time.Minute)
		equal(t, "polls", r.polls(), 0)
		if n := len(r.sent()); n < 19 || n > 22 {
			t.Errorf("%d tests in 10 minutes, want one in 30 s", n)
		}
		equal(t, "wake-ups of a process without work", e.count(), 1) // at its start
	})
}

func TestAHubWhoseNotificationsAreLostPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fallible{deaf: true}
		hub := wake.New(r, nil)
		defer hub.Close()
		var e ear
		hub.Subscribe("x", e.hear)
		pass(time.Minute)
		for range 100 {
			before := e.count()
			r.commit()
			pass(300 * time.Millisecond)
			equal(t, "wake-ups after a commit", e.count(), before+1)
			equal(t, "due time", e.at(before), wake.Unknown)
		}
		before := e.count()
		r.polls()
		pass(10 * time.Minute)
		equal(t, "wake-ups without commits", e.count(), before)
		if n := r.polls(); n > 4*600+10 {
			t.Errorf("%d polls in 10 minutes", n)
		}
	})
}

// A pooler is put in front of the server and removed while the process runs.
func TestAHubNoticesThatNotificationsBeginAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fallible{}
		hub := wake.New(r, nil)
		defer hub.Close()
		var e ear
		hub.Subscribe("x", e.hear)
		for range 3 {
			pass(time.Minute)
			r.change(true)
			pass(40 * time.Second)
			before := e.count()
			r.commit()
			pass(300 * time.Millisecond)
			equal(t, "wake-ups while notifications are lost", e.count(), before+1)
			r.change(false)
			pass(time.Minute)
			r.polls()
			pass(time.Minute)
			equal(t, "polls while notifications arrive", r.polls(), 0)
		}
	})
}
