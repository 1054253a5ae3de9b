package api

import (
	"context"
	"testing"
)

// quiet is a feed that nothing but the test changes.
func quiet() *feed {
	return newFeed("e", func(ctx context.Context, _ func(string)) { <-ctx.Done() })
}

// A thousand subscribers that never look neither hold up who tells, nor make the feed
// grow; when they look at last, they are told to start over.
func TestSubscribersThatNeverLookCostNothing(t *testing.T) {
	t.Parallel()
	f := quiet()
	var wakes []chan struct{}
	for range 1000 {
		wake, _, ok := f.subscribe()
		if !ok {
			t.Fatal("refused")
		}
		wakes = append(wakes, wake)
	}
	for range 10 * remembered {
		f.changed("hooks")
		f.flush()
	}
	if len(f.recent) > remembered || cap(f.recent) > 4*remembered {
		t.Errorf("%d changes are remembered, in room for %d", len(f.recent), cap(f.recent))
	}
	if _, known := f.after(0); known {
		t.Error("a subscriber that is far behind is not told to start over")
	}
	for _, wake := range wakes {
		f.unsubscribe(wake)
	}
	f.close()
}

func TestChangesAreToldOnceAndInOrder(t *testing.T) {
	t.Parallel()
	f := quiet()
	wake, seq, _ := f.subscribe()
	for range 3 {
		f.changed("hooks")
	}
	f.flush()
	f.changed("tasks")
	f.flush()
	<-wake
	changes, known := f.after(seq)
	if !known || len(changes) != 2 || changes[0].Kind != "hooks" || changes[0].N != 3 || changes[1].Kind != "tasks" {
		t.Errorf("changes: %+v, %v", changes, known)
	}
	if rest, known := f.after(changes[0].seq); !known || len(rest) != 1 {
		t.Errorf("after the first: %+v, %v", rest, known)
	}
	if seq, ok := f.parse(f.id(changes[1].seq)); !ok || seq != changes[1].seq {
		t.Errorf("the id of a change is read as %d, %v", seq, ok)
	}
	f.unsubscribe(wake)
	f.close()
}

func TestTooManySubscribersAreRefused(t *testing.T) {
	t.Parallel()
	f := quiet()
	for range maxSubscribers {
		if _, _, ok := f.subscribe(); !ok {
			t.Fatal("refused too early")
		}
	}
	if _, _, ok := f.subscribe(); ok {
		t.Error("one too many is not refused")
	}
	for wake := range f.subs {
		f.unsubscribe(wake)
	}
	f.close()
}
