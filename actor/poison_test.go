package actor_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// fragile has a delay whose guard decides what becomes of the process, and one that
// comes later.
const fragile = `{
	"id": "p", "type": "parallel", "states": {
		"fatal": {"initial": "a", "states": {"a": {"after": {"1": {"target": "b", "guard": "survives"}}}, "b": {}}},
		"later": {"initial": "a", "states": {"a": {"after": {"2": "b"}}, "b": {}}}
	}
}`

// fragiles returns actors of a process in which the guard is a function.
func fragiles(eng *perdure.Engine, survives func() bool) (*actor.Actors, error) {
	actors, err := actor.New(eng, &actor.Options{Lease: time.Second, OnError: func(error) {}})
	if err != nil {
		return nil, err
	}
	document := func(name string, guard func() bool) error {
		return actors.Register(name, []byte(fragile), &actor.TypeOptions{Registry: &statechart.Registry{
			Guards: map[string]statechart.Guard{"survives": func(statechart.Args) (bool, error) { return guard(), nil }},
		}})
	}
	if err := document("healthy", func() bool { return true }); err != nil {
		return nil, err
	}
	return actors, document("poison", survives)
}

var poisonRef = actor.Ref{Type: "poison", ID: "1"}

func healthyRef(i int) actor.Ref { return actor.Ref{Type: "healthy", ID: fmt.Sprint(i)} }

// poisoned is the program of a child: it fires delays until one of them kills it, or
// the one that does so is quarantined and nothing else is due.
func poisoned() error {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, os.Getenv(childVariable), nil)
	if err != nil {
		return err
	}
	actors, err := fragiles(eng, func() bool {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	})
	if err != nil {
		return err
	}
	d, err := dispatch.NewWaker(actors, nil)
	if err != nil {
		return err
	}
	d.Start()
	for {
		quarantined, err := actors.Timers(ctx, poisonRef)
		if err != nil {
			return err
		}
		left := len(quarantined)
		for _, timer := range quarantined {
			if timer.Error != "" {
				left--
			}
		}
		for i := range 3 {
			timers, err := actors.Timers(ctx, healthyRef(i))
			if err != nil {
				return err
			}
			left += len(timers)
		}
		if left == 0 {
			return d.Stop(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A delay that kills every process that fires it is quarantined, and the other delays
// of its actor and of all other actors fire.
func TestADelayThatKillsItsProcessIsQuarantined(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			actors, err := fragiles(db.Open(t, nil), func() bool { return true })
			enginetest.NoError(t, err)
			for _, ref := range []actor.Ref{poisonRef, healthyRef(0), healthyRef(1), healthyRef(2)} {
				_, err := actors.Spawn(enginetest.Context(t), ref, alice, nil, nil)
				enginetest.NoError(t, err)
			}
			losses := 0
			for ; losses < 20 && lostChild(t, db); losses++ {
			}
			// five crashes, and those that halve the eight delays
			if most := 5 + 3; losses > most {
				t.Errorf("%d processes were lost, want %d at most", losses, most)
			}
			timers, err := actors.Timers(enginetest.Context(t), poisonRef)
			enginetest.NoError(t, err)
			if len(timers) != 1 || timers[0].Error == "" || timers[0].Crashes < 5 {
				t.Errorf("the delays that are left are %+v", timers)
			}
			dead := db.Int(t, "select count(*) from "+db.Table("perdure", "timers")+" where status = 'quarantined'")
			equal(t, "dead letters", dead, 1)
			for i := range 3 {
				state, err := actors.State(enginetest.Context(t), healthyRef(i))
				enginetest.NoError(t, err)
				equal(t, "healthy actor", *jsonOf(t, state.Value), `{"fatal":"b","later":"b"}`)
			}
			state, err := actors.State(enginetest.Context(t), poisonRef)
			enginetest.NoError(t, err)
			equal(t, "actor", *jsonOf(t, state.Value), `{"fatal":"a","later":"b"}`)
			enginetest.NoError(t, actors.RetryTimer(enginetest.Context(t), poisonRef, alice, timers[0].ID))
			enginetest.Eventually(t, "the delay fires", func() bool {
				_, err := actors.Process(enginetest.Context(t))
				enginetest.NoError(t, err)
				state, err = actors.State(enginetest.Context(t), poisonRef)
				enginetest.NoError(t, err)
				return *jsonOf(t, state.Value) == `{"fatal":"b","later":"b"}`
			})
		})
	}
}

// lostChild runs a child and reports whether it was killed.
func lostChild(t *testing.T, db enginetest.Database) bool {
	t.Helper()
	cmd := exec.CommandContext(enginetest.Context(t), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+db.DSN, childVariable+"_POISON=1")
	cmd.Stderr = io.Discard // it tells of crashes
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != -1 {
		t.Fatalf("child ended with %d: %v", code, err)
	}
	return err != nil
}
