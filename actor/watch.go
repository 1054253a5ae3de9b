package actor

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// watchTopics is the number of topics for changes of actors. It is small enough for the
// database, and large enough that watchers of one actor are rarely woken by changes of others.
const watchTopics = 64

func watchTopic(ref Ref) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(ref.String()))
	return "actor/" + strconv.Itoa(int(h.Sum32()%watchTopics))
}

// Watch yields a caller's view of an actor until ctx is done. It yields the current view if its
// version is greater than after, and then each change. Changes that arrive faster than they are
// consumed are merged; the last change is never omitted. Changes that the caller cannot see are
// not yielded.
//
// Watch ends with an error if the actor cannot be read or is deleted, even if another actor has
// its name since then. To continue after an error, call Watch again with the last version, or
// with 0 if the actor does not exist.
func (a *Actors) Watch(ctx context.Context, ref Ref, caller Caller, after int64) iter.Seq2[View, error] {
	return func(yield func(View, error) bool) {
		if err := caller.check(); err != nil {
			yield(View{}, err)
			return
		}
		wakeups := make(chan struct{}, 1) // a capacity of one is enough: wake-ups carry no data
		cancel := a.rt.Hub.Subscribe(watchTopic(ref), func(time.Time) {
			select {
			case wakeups <- struct{}{}:
			default:
			}
		})
		defer cancel()
		w := watcher{actors: a, ref: ref, caller: caller, version: after}
		for w.look(ctx, yield) && a.rest(ctx, wakeups) { //nolint:revive // all is in the condition
		}
	}
}

// rest waits until there may be a change. It returns false when ctx is done.
func (a *Actors) rest(ctx context.Context, wakeups <-chan struct{}) bool {
	timer := a.rt.Clock.NewTimer(a.options.Poll)
	defer timer.Stop()
	select {
	case <-wakeups:
	case <-timer.C():
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// watcher holds the last view that was yielded.
type watcher struct {
	actors  *Actors
	ref     Ref
	caller  Caller
	version int64
	seen    string
	// incarnation is the incarnation of the watched actor, empty until it is known.
	incarnation string
}

// look yields the view if it has changed. It returns false when the consumer stops.
func (w *watcher) look(ctx context.Context, yield func(View, error) bool) bool {
	view, err := w.read(ctx)
	switch {
	case ctx.Err() != nil:
		return false
	case sqldb.IsTransient(err):
		return true // the next poll reads the view
	case err != nil:
		yield(View{}, fmt.Errorf("watch actor: %w", err))
		return false
	case view == nil:
		return true
	}
	w.version = view.Version
	body := *view
	body.Version = 0
	if now := *text(body); now != w.seen {
		w.seen = now
		return yield(*view, nil)
	}
	return true
}

// read returns the view if there is a newer version.
func (w *watcher) read(ctx context.Context) (*View, error) {
	if w.version > 0 {
		incarnation, version := "", int64(-1)
		err := w.actors.read(ctx, w.actors.rt.Store.ActorVersion(w.ref.stored(), func(i string, v int64) { incarnation, version = i, v }))
		if err != nil {
			return nil, err
		}
		if version == w.version {
			return nil, w.same(incarnation)
		}
	}
	view, incarnation, err := w.actors.snapshot(ctx, w.ref, w.caller)
	if err == nil {
		err = w.same(incarnation)
	}
	if err != nil || view.Version == w.version {
		return nil, err
	}
	return &view, nil
}

// same returns an error if another actor has taken the name of the watched actor.
func (w *watcher) same(incarnation string) error {
	if w.incarnation == "" {
		w.incarnation = incarnation
	}
	if w.incarnation != incarnation {
		return notFound(w.ref)
	}
	return nil
}

// Wait returns the view of an actor as soon as wanted reports true for it, which may be
// immediately. It returns the error of ctx if ctx is done first.
func (a *Actors) Wait(ctx context.Context, ref Ref, caller Caller, wanted func(View) bool) (View, error) {
	for view, err := range a.Watch(ctx, ref, caller, 0) {
		if err != nil || wanted(view) {
			return view, err
		}
	}
	return View{}, ctx.Err()
}
