package sqlapp_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// Hooks run concurrently and in any order. Events of one actor do not.
func TestAnActorGetsItsEventsInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	front, back := f.spawn(t, "front"), f.spawn(t, "back")
	const events = 60
	var senders sync.WaitGroup
	for _, id := range []string{"front", "back"} {
		conn := connect(t, f.dsn(t))
		senders.Go(func() {
			for n := range events {
				if _, err := query(conn, "select id from perdure.send_event('door', $1, $2)", id, fmt.Sprintf(`{"type": "ADD", "n": %d}`, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	for _, ref := range []struct{ got []int }{{f.seen(t, front, events)}, {f.seen(t, back, events)}} {
		if !slices.IsSorted(ref.got) || len(ref.got) != events {
			t.Errorf("events arrived as %v", ref.got)
		}
	}
	enginetest.Eventually(t, "the inbox is empty", func() bool { return f.db.Int(t, "select count(*) from perdure.actor_inbox") == 0 })
	entries, err := f.actors.Log(enginetest.Context(t), front, 1, 1)
	enginetest.NoError(t, err)
	if c := entries[0].Caller; c == nil || c.Kind != "service" || c.ID != f.role {
		t.Errorf("the caller is %+v", c)
	}
}

func TestAnEventWithAKeyIsHandledOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	front := f.spawn(t, "front")
	send := func() string {
		return f.call(t, `select duplicate from perdure.send_event('door', 'front', '{"type": "ADD", "n": 1}', '{"key": "k", "caller": {"type": "client", "id": "ann"}}')`)
	}
	equal(t, "first", send(), "false")
	f.seen(t, front, 1)
	equal(t, "second", send(), "true")
	// Two that wait together: neither of them was handled when it was sent. The second is another
	// event with the same key: it is a dead letter, and does not stop the next one.
	_, err := f.app.Exec(enginetest.Context(t), `begin;
		select perdure.send_event('door', 'front', '{"type": "ADD", "n": 2}', '{"key": "l"}');
		select perdure.send_event('door', 'front', '{"type": "ADD", "n": 3}', '{"key": "l"}');
		select perdure.send_event('door', 'front', '{"type": "ADD", "n": 4}'); commit`)
	enginetest.NoError(t, err)
	if got := f.seen(t, front, 3); !slices.Equal(got, []int{1, 2, 4}) {
		t.Errorf("events are %v", got)
	}
	const dead = `select count(*) from perdure.v1_hooks where hook = 'event/door' and status = 'failed' and error like '%another event with the key%'`
	enginetest.Eventually(t, "the other event is a dead letter", func() bool { return f.db.Int(t, dead) == 1 })
}

// An event that the actor cannot accept is a dead letter, and does not stop the next ones.
func TestARefusedEventIsADeadLetter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	front, gone := f.spawn(t, "front"), f.spawn(t, "gone")
	_, err := f.app.Exec(enginetest.Context(t), "begin")
	enginetest.NoError(t, err)
	f.call(t, `select id from perdure.send_event('door', 'gone', '{"type": "ADD", "n": 1}')`)
	f.call(t, `select id from perdure.send_event('door', 'front', '{"type": "ADD", "n": 2}')`)
	enginetest.NoError(t, f.actors.Delete(enginetest.Context(t), gone))
	_, err = f.app.Exec(enginetest.Context(t), "commit")
	enginetest.NoError(t, err)
	equal(t, "event", f.seen(t, front, 1)[0], 2)
	const dead = `select count(*) from perdure.v1_hooks where namespace = 'actor' and hook = 'event/door' and status = 'failed' and error like '%not%'`
	enginetest.Eventually(t, "the event is a dead letter", func() bool { return f.db.Int(t, dead) == 1 })
	equal(t, "inbox", f.db.Int(t, "select count(*) from perdure.actor_inbox"), 0)
}
