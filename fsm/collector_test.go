package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
)

// collector ends after four signals; its result is the keys of all that it was
// given.
func collector() *fsm.Definition[[]string] {
	return fsm.Define("collector", 1, nil,
		fsm.Step("wait", func(_ context.Context, r *fsm.Run[[]string]) (fsm.Outcome, error) {
			return r.Await("item").Then("collect"), nil
		}, nil),
		fsm.Step("collect", func(_ context.Context, r *fsm.Run[[]string]) (fsm.Outcome, error) {
			for _, s := range r.Awaited {
				var key string
				if err := s.Decode(&key); err != nil {
					return fsm.Outcome{}, err
				}
				r.State = append(r.State, key)
			}
			if len(r.State) >= 4 {
				return r.Done(r.State), nil
			}
			return r.Await("item").Then("collect"), nil
		}, nil),
	)
}

// runCollectors is the role of processes that run collectors and send to them until
// they are killed.
func runCollectors(ctx context.Context, self *torture.Self) error {
	var args victim
	if err := self.Args(&args); err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	d := collector()
	eng, _, alarm, err := tortured{all: []fsm.Definer{d}}.open(ctx, args.DSN)
	if err != nil {
		return err
	}
	alarm.Start()
	var senders sync.WaitGroup
	for n := range 4 {
		senders.Go(func() {
			for ctx.Err() == nil {
				_ = collect(ctx, eng, d, fmt.Sprint("cart ", n%2), journal)
				self.Ready()
			}
		})
	}
	senders.Wait()
	return alarm.Stop(context.WithoutCancel(ctx))
}

// collect sends one signal to the collector of a key, with its intent and its fate
// in the journal.
func collect(ctx context.Context, eng *perdure.Engine, d *fsm.Definition[[]string], key string, journal *torture.Journal) error {
	item := uuid.NewString()
	if err := journal.Intend(item); err != nil {
		return err
	}
	if _, err := fsm.SendOrStart(ctx, eng, d, nil, &fsm.StartOptions{Unique: key}, "item", item, nil); err != nil {
		return err // its fate is unknown
	}
	return journal.Acknowledge(item)
}

// Four senders in each of two processes send to collectors that end after four
// signals, while one process is killed, 10 times (times PERDURE_SOAK): every
// acknowledged signal was handled by exactly one committed step.
func TestCollectorsHandleEverySignalThroughKills(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) string{enginetest.SQLite: durableFile, enginetest.Postgres: testdb.DurablePostgres, enginetest.MySQL: testdb.DurableMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := victim{DSN: open(t), Journal: filepath.Join(t.TempDir(), "journal")}
			bystander := args
			bystander.Journal = filepath.Join(t.TempDir(), "other")
			survivor, err := torture.StartChild("collectors", bystander)
			enginetest.NoError(t, err)
			enginetest.NoError(t, survivor.AwaitReady(t.Context()))
			loop := &torture.CrashLoop{
				Start: func() (*torture.Child, error) { return torture.StartChild("collectors", args) },
				Kills: rounds(10), Seed: rand.Uint64(), Longest: 150 * time.Millisecond,
			}
			t.Logf("seed %d", loop.Seed)
			enginetest.NoError(t, loop.Run(t.Context()))
			enginetest.NoError(t, survivor.Stop())
			everyItemWasCollected(t, args.DSN, args.Journal, bystander.Journal)
		})
	}
}

// everyItemWasCollected fills up the last collectors and compares what all of them
// were given with the journals.
func everyItemWasCollected(t *testing.T, dsn string, journals ...string) {
	t.Helper()
	d := collector()
	eng, machines, alarm, err := tortured{all: []fsm.Definer{d}}.open(t.Context(), dsn)
	enginetest.NoError(t, err)
	defer func() { enginetest.NoError(t, eng.Close()) }()
	alarm.Start()
	filled := map[string]bool{}
	enginetest.Eventually(t, "every collector ends", func() bool {
		live, _, err := machines.List(t.Context(), fsm.Filter{Live: true}, "", 10)
		enginetest.NoError(t, err)
		for _, i := range live {
			for range 4 { // as many as it needs, once: it cannot end while signals arrive
				var ended *perdure.StateError
				if filled[i.ID] {
					break
				}
				if _, err := fsm.Send(t.Context(), eng, i.ID, "item", "filler", nil); err != nil && !errors.As(err, &ended) {
					t.Error(err)
				}
			}
			filled[i.ID] = true
		}
		return len(live) == 0
	})
	enginetest.NoError(t, alarm.Stop(enginetest.Context(t)))
	given := collected(t, machines)
	acknowledged := 0
	for _, path := range journals {
		known, err := torture.ReadJournal(path)
		enginetest.NoError(t, err)
		for item, outcome := range known {
			if outcome == torture.Acknowledged {
				if acknowledged++; given[item] != 1 {
					t.Errorf("signal %s was acknowledged and handled %d times", item, given[item])
				}
			}
		}
	}
	t.Logf("%d signals were acknowledged", acknowledged)
	if acknowledged < 100 {
		t.Errorf("only %d signals were acknowledged: little was proven", acknowledged)
	}
	sound(t, eng)
}

// collected counts the signals in the results of all collectors.
func collected(t *testing.T, m *fsm.Machines) map[string]int {
	t.Helper()
	given := map[string]int{}
	for cursor := ""; ; {
		page, next, err := m.List(t.Context(), fsm.Filter{Definition: "collector"}, cursor, 1000)
		enginetest.NoError(t, err)
		for _, i := range page {
			var items []string
			enginetest.NoError(t, i.Decode(&items))
			for _, item := range items {
				given[item]++
			}
		}
		if cursor = next; cursor == "" {
			return given
		}
	}
}
