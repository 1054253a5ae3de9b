package actor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// childVariable has the DSN of the database on which this binary, run as a child
// of a test, sends events to actors until it dies. The variables that begin with
// it name the ledger of effects and the events that were acknowledged.
const childVariable = "PERDURE_TEST_ACTOR_CHILD"

const killEvents = 10 // of each actor

// killActors is how many actors get events.
var killActors = 60 * min(enginetest.Soak(), 4)

// worker is a machine with all that can be lost: states with long delays, a delay
// that fires, effects, and an invocation. Its regions do not look at each other, so that
// the end does not depend on who was faster.
const worker = `{
	"id": "w", "type": "parallel", "context": {"n": 0, "done": 0},
	"states": {
		"steps": {"initial": "even", "states": {
			"even": {"after": {"3600000": "odd"}, "on": {"STEP": {"target": "odd", "actions": ["count", "mark"]}}},
			"odd": {"after": {"7200000": "even"}, "on": {"STEP": {"target": "even", "actions": ["count", "mark"]}}}
		}},
		"bell": {"initial": "silent", "states": {
			"silent": {"on": {"RING": "ringing"}},
			"ringing": {"after": {"5": "rung"}},
			"rung": {"entry": {"type": "mark", "params": {"n": "rung"}}}
		}},
		"work": {"initial": "idle", "states": {
			"idle": {"on": {"GO": "busy"}},
			"busy": {"invoke": {"src": "work", "input": {"$from": "event.i"}, "onDone": {"target": "finished", "actions": {"type": "xstate.assign", "params": {"assignment": {"done": {"$from": "event.output"}}}}}}},
			"finished": {"entry": {"type": "mark", "params": {"n": {"$expr": "\"done \" + string(context.done)"}}}}
		}}
	}
}`

// workerDocument is worker with its actions written out.
func workerDocument() string {
	count := `{"type": "xstate.assign", "params": {"assignment": {"n": {"$expr": "context.n + 1"}}}}`
	mark := `{"type": "mark", "params": {"n": {"$from": "context.n"}}}`
	return strings.ReplaceAll(worker, `["count", "mark"]`, "["+count+", "+mark+"]")
}

// script is what is sent to each actor.
func script(i int) statechart.Event {
	switch i {
	case 0:
		return statechart.Event{Type: "RING"}
	case killEvents - 1:
		return statechart.Event{Type: "GO", Data: map[string]any{"i": 42}}
	}
	return statechart.Event{Type: "STEP"}
}

func workerRef(i int) actor.Ref { return actor.Ref{Type: "w", ID: fmt.Sprintf("%03d", i)} }

// workers returns the actors of a process; effects go to mark.
func workers(eng *perdure.Engine, mark func(actor.Call) error) (*actor.Actors, error) {
	actors, err := actor.New(eng, &actor.Options{Lease: time.Second, MaxCrashes: 100, OnError: func(error) {}})
	if err != nil {
		return nil, err
	}
	return actors, actors.Register("w", []byte(workerDocument()), &actor.TypeOptions{
		Effects:     map[string]actor.Effect{"mark": {Run: func(_ context.Context, c actor.Call) error { return mark(c) }}},
		Invocations: map[string]actor.Invocation{"work": {Run: func(_ context.Context, c actor.Call) (v any, err error) { return v, c.Decode(&v) }}},
	})
}

// child spawns actors and sends what is not acknowledged yet, and prints what is,
// until it is killed or done.
func child() int {
	if os.Getenv(childVariable+"_POISON") != "" {
		if err := poisoned(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if err := runChild(os.Getenv(childVariable), os.Getenv(childVariable+"_LEDGER"), os.Getenv(childVariable+"_ACKED")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runChild(dsn, ledger, acked string) error {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(ledger, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	actors, err := workers(eng, func(c actor.Call) error {
		_, err := fmt.Fprintf(file, "%s %s %s\n", c.Actor.ID, c.Key, c.Params) // one write: a line is whole
		return err
	})
	if err != nil {
		return err
	}
	d, err := dispatch.NewWaker(actors, nil)
	if err != nil {
		return err
	}
	d.Start()
	next := make([]int, killActors)
	raw, err := os.ReadFile(acked)
	if err == nil {
		err = json.Unmarshal(raw, &next)
	}
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for lane := range 8 {
		all.Go(func() {
			for i := lane; i < killActors; i += 8 {
				sendAll(ctx, actors, i, next[i])
			}
		})
	}
	all.Wait()
	fmt.Println("end 0")
	select {} // goes on dispatching until it is killed
}

// sendAll sends one actor the rest of its script.
func sendAll(ctx context.Context, actors *actor.Actors, i, next int) {
	ref := workerRef(i)
	for {
		if _, err := actors.Spawn(ctx, ref, alice, nil, &actor.SpawnOptions{IfAbsent: true}); err == nil {
			break
		}
	}
	for n := next; n < killEvents; {
		if _, err := actors.Send(ctx, ref, alice, script(n), &actor.SendOptions{Key: fmt.Sprint(n)}); err != nil {
			continue // it has an unknown outcome: the key makes it safe
		}
		n++
		fmt.Printf("ack %d\n", i)
	}
}

// A process that sends 600 events to 60 actors (2,400 to 240 with PERDURE_SOAK=4 and
// more) and dispatches their delays, effects and invocations is killed again and again. What
// is there in the end is what an undisturbed run leaves: states, delays, effects (case
// 45 of the notes).
func TestCase45KillingProcessesChangesNothing(t *testing.T) {
	t.Parallel()
	want := undisturbedRun(t)
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			db.Open(t, nil) // migrates
			ledger := killLoop(t, db, 5*enginetest.Soak())
			got := killedRun(t, db, ledger)
			for i := range killActors {
				id := workerRef(i).ID
				equal(t, "end of "+id, got[id], want[id])
			}
		})
	}
}

// killLoop runs children and kills them, and returns the ledger of effects.
func killLoop(t *testing.T, db enginetest.Database, kills int) string {
	t.Helper()
	dir := t.TempDir()
	ledger, acked := filepath.Join(dir, "ledger"), filepath.Join(dir, "acked")
	next := make([]int, killActors)
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	for k := 0; ; k++ {
		raw, err := json.Marshal(next)
		enginetest.NoError(t, err)
		enginetest.NoError(t, os.WriteFile(acked, raw, 0o600))
		left := 1 + random.IntN(2*killActors*killEvents/kills)
		if k >= kills {
			left = -1 // to the end
		}
		if runUntil(t, db, ledger, acked, next, left) {
			return ledger
		}
	}
}

// runUntil runs a child until it has acknowledged so many events, then kills it.
// It returns true if the child came to its end.
func runUntil(t *testing.T, db enginetest.Database, ledger, acked string, next []int, left int) (ended bool) {
	t.Helper()
	cmd := exec.CommandContext(enginetest.Context(t), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+db.DSN, childVariable+"_LEDGER="+ledger, childVariable+"_ACKED="+acked)
	cmd.Stderr = io.Discard // it complains when it dies
	out, err := cmd.StdoutPipe()
	enginetest.NoError(t, err)
	enginetest.NoError(t, cmd.Start())
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		var what string
		var i int
		if _, err := fmt.Sscan(scanner.Text(), &what, &i); err != nil {
			continue // it died in the middle of a line
		}
		if ended = what == "end"; ended {
			break
		}
		next[i]++
		if left--; left == 0 {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return ended
}

// killedRun finishes what the killed processes have left and describes the end.
func killedRun(t *testing.T, db enginetest.Database, ledger string) map[string]string {
	t.Helper()
	var mu sync.Mutex
	marks := map[string]map[string]string{} // by actor and key
	note := func(id, key, params string) {
		mu.Lock()
		defer mu.Unlock()
		if marks[id] == nil {
			marks[id] = map[string]string{}
		}
		if before, again := marks[id][key]; again && before != params {
			t.Errorf("effect %s is once %s and once %s", key, before, params)
		}
		marks[id][key] = params
	}
	eng := db.Open(t, nil)
	actors, err := workers(eng, func(c actor.Call) error {
		note(c.Actor.ID, c.Key, string(c.Params))
		return nil
	})
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "nothing is left to do", func() bool {
		_, err := actors.Process(enginetest.Context(t))
		enginetest.NoError(t, err)
		open := db.Int(t, "select count(*) from "+db.Table("perdure", "hooks")+" where status <> 'done'")
		short := db.Int(t, "select count(*) from "+db.Table("perdure", "timers")+" where type like 'xstate.after.5.%'")
		return open+short == 0
	})
	raw, err := os.ReadFile(ledger)
	enginetest.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if parts := strings.SplitN(strings.TrimSpace(line), " ", 3); len(parts) == 3 {
			note(parts[0], parts[1], parts[2])
		}
	}
	return describe(t, actors, marks)
}

// undisturbedRun does the same in one process that nobody kills.
func undisturbedRun(t *testing.T) map[string]string {
	t.Helper()
	clock := perduretest.NewClock(noon)
	eng := enginetest.New(t, enginetest.SQLite).Open(t, &perdure.Options{Clock: clock})
	var mu sync.Mutex
	marks := map[string]map[string]string{}
	actors, err := workers(eng, func(c actor.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if marks[c.Actor.ID] == nil {
			marks[c.Actor.ID] = map[string]string{}
		}
		marks[c.Actor.ID][c.Key] = string(c.Params)
		return nil
	})
	enginetest.NoError(t, err)
	for i := range killActors {
		_, err := actors.Spawn(enginetest.Context(t), workerRef(i), alice, nil, nil)
		enginetest.NoError(t, err)
		for n := range killEvents {
			_, err := actors.Send(enginetest.Context(t), workerRef(i), alice, script(n), nil)
			enginetest.NoError(t, err)
		}
	}
	clock.Advance(time.Second)
	_, err = actors.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	return describe(t, actors, marks)
}

// describe says of each actor how it ended, which delays it has, and which
// effects it had; every log must lead to its snapshot.
func describe(t *testing.T, actors *actor.Actors, marks map[string]map[string]string) map[string]string {
	t.Helper()
	ends := map[string]string{}
	for i := range killActors {
		ref := workerRef(i)
		state, err := actors.State(enginetest.Context(t), ref)
		enginetest.NoError(t, err)
		timers, err := actors.Timers(enginetest.Context(t), ref)
		enginetest.NoError(t, err)
		var delays, effects []string
		for _, timer := range timers {
			delays = append(delays, timer.Event.Type)
		}
		for _, params := range marks[ref.ID] {
			effects = append(effects, params)
		}
		slices.Sort(effects)
		_, err = actors.Replay(enginetest.Context(t), ref)
		enginetest.NoError(t, err)
		ends[ref.ID] = fmt.Sprint(*jsonOf(t, state.Value), *jsonOf(t, state.Context), delays, effects)
	}
	return ends
}
