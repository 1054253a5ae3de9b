package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

func Example_history() {
	print := func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
		if run.Attempt == 1 {
			return fsm.Outcome{}, errors.New("out of paper")
		}
		return run.Next("post"), nil
	}
	post := func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) { return run.Done("posted"), nil }
	letters := fsm.Define("letter", 1, &fsm.DefinitionOptions[string]{Retry: retry.Fixed(3, 10*time.Millisecond), KeepHistory: true}, fsm.Step("print", print, nil), fsm.Step("post", post, nil))

	eng := open()
	defer eng.Close()
	machines, stop := runMachines(eng, letters)
	defer stop()
	started, err := fsm.Start(ctx, eng, letters, "Dear Ada", nil)
	if err != nil {
		panic(err)
	}
	if _, err := machines.Wait(ctx, started.ID); err != nil {
		panic(err)
	}
	history, _, err := machines.History(ctx, started.ID, "", 100)
	for _, h := range history {
		fmt.Printf("%s, attempt %d: %s %q\n", h.Step, h.Attempt, h.Outcome, h.Error)
	}
	fmt.Println(err)
	// Output:
	// print, attempt 1: replay "out of paper"
	// print, attempt 2: next ""
	// post, attempt 1: done ""
	// <nil>
}

// runMachines runs the instances of machines until stop is called.
func runMachines(eng *perdure.Engine, definitions ...fsm.Definer) (machines *fsm.Machines, stop func()) {
	return runMachinesIn(eng, fsm.DefaultQueue, definitions...)
}

// runMachinesIn is runMachines for a queue.
func runMachinesIn(eng *perdure.Engine, queue string, definitions ...fsm.Definer) (machines *fsm.Machines, stop func()) {
	machines, err := fsm.New(eng, &fsm.Options{Queues: map[string]int{queue: 100}})
	if err != nil {
		panic(err)
	}
	if err := machines.Register(definitions...); err != nil {
		panic(err)
	}
	dispatcher, err := dispatch.NewWaker(machines, nil)
	if err != nil {
		panic(err)
	}
	dispatcher.Start()
	return machines, func() { _ = dispatcher.Stop(ctx) }
}
