package actor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// A machine with Go functions: an effect, and an invocation whose result comes back.
func Example() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	actors, err := actor.New(eng, nil)
	if err != nil {
		panic(err)
	}
	document := []byte(`{
		"id": "order", "initial": "open", "context": {"public": {"receipt": null}},
		"states": {
			"open": {"on": {"PAY": "charging"}},
			"charging": {"invoke": {"src": "charge", "input": {"$from": "event.amount"},
				"onDone": {"target": "paid", "actions": {"type": "xstate.assign", "params": {"assignment": {"public": {"receipt": {"$from": "event.output"}}}}}},
				"onError": "open"}},
			"paid": {"type": "final", "entry": {"type": "ship", "params": {"receipt": {"$from": "context.public.receipt"}}}}
		}
	}`)
	shipped := make(chan string, 1)
	err = actors.Register("order", document, &actor.TypeOptions{
		Invocations: map[string]actor.Invocation{"charge": {Run: func(_ context.Context, call actor.Call) (any, error) {
			var amount int
			if err := call.Decode(&amount); err != nil {
				return nil, err
			}
			return fmt.Sprintf("%d EUR", amount), nil // hand call.Key to the bank
		}}},
		Effects: map[string]actor.Effect{"ship": {Run: func(_ context.Context, call actor.Call) error {
			shipped <- string(call.Params)
			return nil
		}}},
	})
	if err != nil {
		panic(err)
	}
	d, err := dispatch.NewWaker(actors, nil)
	if err != nil {
		panic(err)
	}
	d.Start()
	defer d.Stop(ctx)

	ref, alice := actor.Ref{Type: "order", ID: "42"}, actor.Caller{Kind: actor.Client, ID: "alice"}
	if _, err := actors.Spawn(ctx, ref, alice, nil, nil); err != nil {
		panic(err)
	}
	pay := statechart.Event{Type: "PAY", Data: map[string]any{"amount": 5}}
	if _, err := actors.Send(ctx, ref, alice, pay, &actor.SendOptions{Key: "payment-1"}); err != nil {
		panic(err)
	}
	fmt.Println(<-shipped)
	view, err := actors.Snapshot(ctx, ref, alice)
	fmt.Println(view.Status, view.Value, view.Public, err)
	// Output:
	// {"receipt":"5 EUR"}
	// done paid map[receipt:5 EUR] <nil>
}

// A machine that is data only is known to every process of the database.
func ExampleActors_StoreStatechart() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	actors, err := actor.New(eng, nil)
	if err != nil {
		panic(err)
	}
	document, err := actors.StoreStatechart(ctx, "trial", []byte(`{
		"id": "trial", "initial": "running",
		"states": {
			"running": {"after": {"1209600000": "expired"}, "on": {"BUY": "customer"}},
			"expired": {"on": {"BUY": "customer"}},
			"customer": {}
		}
	}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(document.Name, "version", document.Version)
	ref := actor.Ref{Type: "trial", ID: "alice"}
	if _, err := actors.Spawn(ctx, ref, actor.Caller{Kind: actor.System}, nil, nil); err != nil {
		panic(err)
	}
	timers, err := actors.Timers(ctx, ref)
	if err != nil {
		panic(err)
	}
	for _, t := range timers {
		fmt.Println(t.Due.Format(time.DateOnly), t.State, "to", t.Leads)
	}
	clock.Advance(14 * 24 * time.Hour)
	if _, err := actors.Process(ctx); err != nil { // usually a dispatcher calls Process
		panic(err)
	}
	view, err := actors.Snapshot(ctx, ref, actor.Caller{Kind: actor.System})
	fmt.Println(view.Value, err)
	// Output:
	// trial version 1
	// 2026-01-15 trial.running to [trial.expired]
	// expired <nil>
}

// An event can be part of a unit of work: it is handled at once, and what followed
// is committed or rolled back with the rest.
func ExampleActors_SendIn() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	actors, err := actor.New(eng, nil)
	if err != nil {
		panic(err)
	}
	door := `{"id": "door", "initial": "shut", "states": {"shut": {"on": {"OPEN": "open"}}, "open": {"on": {"SHUT": "shut"}}}}`
	if err := actors.Register("door", []byte(door), nil); err != nil {
		panic(err)
	}
	ref, caller := actor.Ref{Type: "door", ID: "front"}, actor.Caller{Kind: actor.Service, ID: "house"}
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		if _, err := actors.SpawnIn(tx, ref, caller, nil, nil); err != nil {
			return err
		}
		_, err := actors.SendIn(tx, ref, caller, statechart.Event{Type: "OPEN"}, nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	view, err := actors.Snapshot(ctx, ref, caller)
	fmt.Println(view.Value, err)
	// Output: open <nil>
}
