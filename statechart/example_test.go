package statechart_test

import (
	"fmt"

	"github.com/perdure/perdure/statechart"
)

// A machine that is data only, on a virtual clock.
func Example() {
	machine, err := statechart.Parse([]byte(`{
		"id": "door", "initial": "closed", "context": {"opened": 0},
		"states": {
			"closed": {"on": {"OPEN": {"target": "open", "guard": {"type": "expr", "params": {"when": "event.key == 'gold'"}}}}},
			"open": {
				"entry": {"type": "xstate.assign", "params": {"assignment": {"opened": {"$expr": "context.opened + 1"}}}},
				"after": {"5000": "closed"}
			}
		}
	}`), nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sim, _, _ := statechart.Simulate(machine, nil, nil)
	show := func() {
		s := sim.Tree.State()
		fmt.Println(sim.Now, s.Value, s.Context["opened"])
	}
	for _, key := range []string{"tin", "gold"} {
		_, _ = sim.Send(statechart.Event{Type: "OPEN", Data: map[string]any{"key": key}})
		show()
	}
	_, _ = sim.Advance(5000)
	show()
	// Output:
	// 0 closed 0
	// 0 open 1
	// 5000 closed 1
}

// The same shape from Go, with functions for what the document only names.
func ExampleBuild() {
	machine, err := statechart.Build(statechart.Def{
		ID: "order", Initial: "open", Context: map[string]any{"total": 0},
		States: []statechart.Def{
			{Key: "open", On: []statechart.Transition{
				{Event: "ADD", Do: []statechart.Call{{Type: "add"}}},
				{Event: "PAY", Targets: statechart.To("paying"), Guard: &statechart.Call{Type: "enough", Params: map[string]any{"least": 10}}},
			}},
			{Key: "paying", Invoke: []statechart.Invocation{{
				ID: "charge", Src: "charge", Input: statechart.From("context.total"),
				Done: []statechart.Transition{{Targets: statechart.To("paid")}},
			}}, After: []statechart.Transition{{Delay: statechart.Millis(60_000), Targets: statechart.To("open")}}},
			{Key: "paid", Type: "final", Entry: []statechart.Call{{Type: "thank"}}},
		},
	}, &statechart.Registry{
		Guards: map[string]statechart.Guard{"enough": func(a statechart.Args) (bool, error) {
			return a.Context["total"].(int64) >= a.Params["least"].(int64), nil
		}},
		Actions: map[string]statechart.Action{
			"add": statechart.Assign(func(a statechart.Args) (map[string]any, error) {
				return map[string]any{"total": a.Context["total"].(int64) + a.Event.Data["price"].(int64)}, nil
			}),
			"thank": statechart.Effect{},
		},
		Actors: map[string]statechart.Actor{"charge": statechart.Promise{}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	tree, _, _ := machine.Start(0, nil)
	_, _ = tree.Send(10, statechart.Event{Type: "ADD", Data: map[string]any{"price": 25}})
	step, _ := tree.Send(20, statechart.Event{Type: "PAY"})
	task, timer := step.Invocations[0], step.Timers[0].Timer
	fmt.Println(task.Src, task.Input, timer.Due)
	step, _ = tree.Complete(30, task.Path, task.Generation, "ok")
	fmt.Println(tree.Status(), step.Effects[0].Name, step.Timers[len(step.Timers)-1].Kind)
	// Output:
	// charge 25 60020
	// done thank cancelAll
}
