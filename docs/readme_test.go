package docs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/schema"
)

var users = schema.NewTable("users", schema.String("email"))

var signup = fsm.Define("signup", 1, nil, fsm.Step("welcome", welcome, nil), fsm.Step("confirm", confirm, nil))

func welcome(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
	fmt.Println("welcome,", run.State) // an error is retried with backoff
	return run.Await("confirmed").Then("confirm").Within(48 * time.Hour), nil
}

func confirm(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
	if run.TimedOut {
		return run.Stop("never confirmed"), nil
	}
	return run.Done("a customer"), nil
}

func Example() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", users)}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	machines, stop := runMachines(eng, signup) // in any number of processes
	defer stop()

	var started *fsm.Started
	err = eng.Update(ctx, func(tx *perdure.Tx) (err error) { // both commit, or neither
		tx.Create(users, schema.Values{"email": "ada@example.org"})
		started, err = fsm.StartIn(tx, signup, "ada@example.org", nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	fsm.Send(ctx, eng, started.ID, "confirmed", nil, nil) // possibly a day later, in another process
	done, err := machines.Wait(ctx, started.ID)
	fmt.Println(done.Status, string(done.Result), err)
	// Output:
	// welcome, ada@example.org
	// done "a customer" <nil>
}
