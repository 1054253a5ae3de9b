package docs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// trialMachine is a trial of two weeks.
var trialMachine = []byte(`{
	"id": "trial", "initial": "running",
	"states": {
		"running": {"after": {"1209600000": "expired"}, "on": {"PAY": "paid"}},
		"expired": {"on": {"PAY": "paid"}},
		"paid": {"type": "final"}
	}
}`)

// Timers are data: see what will happen and why, and change it.
func Example_timers() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	actors, err := actor.New(eng, nil)
	if err != nil {
		panic(err)
	}
	if err := actors.Register("trial", trialMachine, nil); err != nil {
		panic(err)
	}
	ref, support := actor.Ref{Type: "trial", ID: "7"}, actor.Caller{Kind: actor.Service, ID: "support"}
	if _, err := actors.Spawn(ctx, ref, support, nil, nil); err != nil {
		panic(err)
	}

	timers, err := actors.Timers(ctx, ref)
	if err != nil {
		panic(err)
	}
	for _, t := range timers {
		fmt.Println(t.Due.Format(time.DateOnly), "of", t.State, "to", t.Leads)
	}
	// Extend the trial by a week.
	if err := actors.MoveTimer(ctx, ref, support, timers[0].ID, timers[0].Due.AddDate(0, 0, 7)); err != nil {
		panic(err)
	}
	ahead, err := actors.Forecast(ctx, ref, clock.Now().AddDate(0, 1, 0))
	if err != nil {
		panic(err)
	}
	for _, firing := range ahead {
		fmt.Println(firing.Timer.Due.Format(time.DateOnly), "it will be", firing.Value)
	}

	clock.Advance(21 * 24 * time.Hour)
	if _, err := actors.Process(ctx); err != nil { // usually a dispatcher calls Process
		panic(err)
	}
	view, err := actors.Snapshot(ctx, ref, support)
	fmt.Println("it is", view.Value, err)
	// Output:
	// 2026-03-15 of trial.running to [trial.expired]
	// 2026-03-22 it will be expired
	// it is expired <nil>
}

// gameMachine keeps the hand of each player from the others.
var gameMachine = []byte(`{
	"id": "game", "initial": "playing",
	"context": {"public": {"round": 1}, "private": {"ann": {"hand": ["ace"]}, "bob": {"hand": ["two"]}}},
	"states": {"playing": {"on": {"NEXT": {"actions": {
		"type": "xstate.assign", "params": {"assignment": {"public": {"round": {"$expr": "context.public.round + 1"}}}}
	}}}}}
}`)

// A caller sees what is public and what is its own.
func Example_callers() {
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
	err = actors.Register("game", gameMachine, &actor.TypeOptions{
		Events: map[actor.CallerKind][]string{actor.Client: {}, actor.Service: {"NEXT"}}, // clients may only read
	})
	if err != nil {
		panic(err)
	}
	ref, dealer := actor.Ref{Type: "game", ID: "1"}, actor.Caller{Kind: actor.Service, ID: "dealer"}
	if _, err := actors.Spawn(ctx, ref, dealer, nil, nil); err != nil {
		panic(err)
	}
	if _, err := actors.Send(ctx, ref, dealer, statechart.Event{Type: "NEXT"}, nil); err != nil {
		panic(err)
	}

	for _, name := range []string{"ann", "bob"} {
		player := actor.Caller{Kind: actor.Client, ID: name}
		view, err := actors.Snapshot(ctx, ref, player)
		if err != nil {
			panic(err)
		}
		fmt.Println(name, "sees", view.Public, view.Private)
	}
	ann := actor.Caller{Kind: actor.Client, ID: "ann"}
	_, err = actors.Send(ctx, ref, ann, statechart.Event{Type: "NEXT"}, nil)
	fmt.Println(err)
	_, err = actors.Send(ctx, ref, dealer, statechart.Event{Type: "xstate.stop"}, nil)
	fmt.Println(err)
	// Output:
	// ann sees map[round:2] map[hand:[ace]]
	// bob sees map[round:2] map[hand:[two]]
	// send event: reference refused by events of type game for callers of type client
	// send event: event.type must not start with xstate., which is reserved for the machine
}
