package server_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/server"
)

// sleeper wakes after a second.
const sleeper = `{"id":"sleeper","initial":"asleep","states":{"asleep":{"after":{"1000":"awake"}},"awake":{}}}`

// Delays of 500 actors (100,000 with PERDURE_SOAK=200) fall due in the same second.
// The server answers requests that read and requests that write while they fire, three
// of each at least: one that had to wait for all the others would be answered after.
func (Flows) RequestsAreAnsweredWhileACrowdOfDelaysFires(t *testing.T, db enginetest.Database) {
	const batches, least = 50, 3
	n := 500 * enginetest.Soak()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	f := openWith(t, db, &perdure.Options{Clock: clock}, nil)
	actors, err := actor.New(f.eng, &actor.Options{Batch: min(n/batches, 256)})
	enginetest.NoError(t, err)
	f = reopen(f, func(o *server.Options) { o.Actors = actors })
	for name, document := range map[string]string{"sleeper": sleeper, "door": door} {
		enginetest.NoError(t, actors.Register(name, []byte(document), nil))
	}
	f.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "door", "id": "1"})
	crowd(t, actors, n)
	enginetest.NoError(t, f.srv.Start())
	clock.Advance(time.Second)
	waiting := func() bool {
		return db.Int(t, "select count(*) from "+db.Table("perdure", "alarms")+" where type like 'xstate.after.1000.%'") > 0
	}
	reads, writes := 0, 0
	for i := 0; ; i++ {
		f.want(http.StatusOK, http.MethodGet, "/v1/actors/door/1", nil)
		if !waiting() {
			break
		}
		reads++
		f.want(http.StatusOK, http.MethodPost, "/v1/actors/door/1/events", object{"type": []string{"OPEN", "CLOSE"}[i%2]})
		if !waiting() {
			break
		}
		writes++
	}
	t.Logf("%d delays fired while %d requests read and %d wrote", n, reads, writes)
	if reads < least || writes < least {
		t.Errorf("%d requests that read and %d that write were answered meanwhile, want %d of each", reads, writes, least)
	}
	awake := f.want(http.StatusOK, http.MethodGet, "/v1/actors?type=sleeper&state=asleep", nil).list()
	if len(awake) > 0 {
		t.Errorf("%d still sleep", len(awake))
	}
}

// crowd spawns so many actors that sleep.
func crowd(t *testing.T, actors *actor.Actors, n int) {
	t.Helper()
	ids := make(chan int)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for id := range ids {
				_, err := actors.Spawn(context.Background(), actor.Ref{Type: "sleeper", ID: fmt.Sprint(id)}, actor.Caller{Kind: actor.System}, nil, nil)
				if err != nil {
					t.Errorf("spawn: %v", err)
				}
			}
		})
	}
	for id := range n {
		ids <- id
	}
	close(ids)
	all.Wait()
}
