// Order takes an order from payment to delivery: a payment with retries, a callback that
// may never come, concurrent shipments, and compensation after a permanent failure.
//
// It runs two orders on a database in memory. The first charge of one order fails; it is
// then paid and shipped. The other order is never paid.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Order is the state of an order. It is stored after every step.
type Order struct {
	Number string
	Items  []string
	// Patience is the time within which the customer must pay.
	Patience time.Duration
	Reserved bool
	Shipped  []string
}

// Orders is the definition of an order.
var Orders = fsm.Define("order", 1, nil,
	fsm.Step("reserve", reserve, nil),
	fsm.Step("charge", charge, nil),
	fsm.Step("paid", paid, nil),
	fsm.Step("close", closeOrder, nil),
	fsm.Step("compensate", compensate, nil),
)

// Shipments is the definition of one parcel.
var Shipments = fsm.Define("shipment", 1, nil, fsm.Step("ship", ship, nil))

func reserve(_ context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	run.State.Reserved = true
	return run.Next("charge"), nil
}

// charge requests the payment from the provider. If the provider does not respond, the step
// is retried with backoff. After five failed attempts the order is compensated. After a
// successful request, the customer has some time to pay.
func charge(ctx context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	err := provider.request(ctx, run.State.Number, run.ID) // the id is the idempotency key
	switch {
	case err != nil && run.Attempt < 5:
		return run.Replay(5 * time.Millisecond << run.Attempt), nil
	case err != nil:
		return run.Next("compensate"), nil
	}
	return run.Await("paid", "declined").Then("paid").Within(run.State.Patience), nil
}

// paid runs when the provider has called back, or after the timeout.
func paid(_ context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	if run.TimedOut || run.Awaited[0].Name == "declined" {
		return run.Next("compensate"), nil
	}
	var parcels []fsm.ChildSpec
	for _, item := range run.State.Items {
		parcels = append(parcels, fsm.ChildOf(Shipments, item, nil))
	}
	return run.Spawn(parcels...).Then("close"), nil
}

// closeOrder runs when all parcels are shipped, or have failed.
func closeOrder(ctx context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	parcels, err := run.Children(ctx)
	if err != nil {
		return fsm.Outcome{}, err
	}
	for _, p := range parcels {
		if p.Status != fsm.Done {
			return run.Next("compensate"), nil
		}
		var parcel string
		if err := p.Decode(&parcel); err != nil {
			return fsm.Outcome{}, err
		}
		run.State.Shipped = append(run.State.Shipped, parcel)
	}
	return run.Done(run.State.Shipped), nil
}

// compensate releases the reservations. It may run more than once, without harm.
func compensate(_ context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	run.State.Reserved = false
	return run.Stop("order " + run.State.Number + " was not paid"), nil
}

func ship(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
	return run.Done("parcel with " + run.State), nil
}

// run starts like a service, and then waits for two orders.
func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	machines, err := fsm.New(eng, nil)
	if err != nil {
		return err
	}
	if err := machines.Register(Orders, Shipments); err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(machines, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	defer func() { _ = dispatcher.Stop(ctx) }()

	paid, err := fsm.Start(ctx, eng, Orders, Order{Number: "A-1", Items: []string{"tea", "cups"}, Patience: time.Hour}, nil)
	if err != nil {
		return err
	}
	unpaid, err := fsm.Start(ctx, eng, Orders, Order{Number: "A-2", Items: []string{"pot"}, Patience: 50 * time.Millisecond}, nil)
	if err != nil {
		return err
	}
	// The provider's callback names the order and may arrive twice.
	for range 2 {
		_, err := fsm.Send(ctx, eng, paid.ID, "paid", "42.00", &fsm.SignalOptions{Key: "callback-77"})
		var ended *perdure.StateError
		if err != nil && !errors.As(err, &ended) { // the order may be finished when the second callback arrives
			return err
		}
	}
	for _, id := range []string{paid.ID, unpaid.ID} {
		order, err := machines.Wait(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s%s\n", order.Status, order.Result, order.Error)
	}
	return nil
}
