package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// Order is the state of an order.
type Order struct {
	Number   string   `json:"number"`
	Customer string   `json:"customer"`
	Items    []string `json:"items"`
	Cents    int      `json:"cents"`
	Parcels  []string `json:"parcels,omitempty"`
}

// Parcel is the state of a parcel.
type Parcel struct {
	Order string `json:"order"`
	Item  string `json:"item"`
}

// Report is the state of a report.
type Report struct {
	Name string `json:"name"`
}

func (s *Shop) defineMachines() {
	s.order = fsm.Define("order", 1, &fsm.DefinitionOptions[Order]{KeepHistory: true},
		fsm.Step("charge", s.charge, nil), fsm.Step("paid", s.paid, nil), fsm.Step("close", s.close, nil))
	s.parcel = fsm.Define("parcel", 1, &fsm.DefinitionOptions[Parcel]{Retry: retry.Fixed(4, time.Second), KeepHistory: true},
		fsm.Step("pack", s.pack, nil), fsm.Step("label", s.label, nil))
	s.report = fsm.Define("report", 1, &fsm.DefinitionOptions[Report]{KeepHistory: true},
		fsm.Step("count", s.count, nil), fsm.Step("send", s.sendReport, nil))
}

var (
	errGateway = errors.New("payment gateway did not respond")
	errAnvil   = errors.New("no box is strong enough for an anvil")
)

// charge requests the payment. The customer has 30 seconds to pay.
func (s *Shop) charge(ctx context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	if err := s.pause(ctx, s.between(20*time.Millisecond, 300*time.Millisecond)); err != nil {
		return fsm.Outcome{}, err
	}
	if s.chance(0.1) {
		return fsm.Outcome{}, errGateway // retried, with backoff
	}
	return run.Await("paid", "declined").Then("paid").Within(30 * time.Second), nil
}

// paid ships the parcels, or stops the order.
func (s *Shop) paid(ctx context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	switch {
	case run.TimedOut:
		return s.cancelled(ctx, run, "payment timed out")
	case run.Awaited[0].Name == "declined":
		return s.cancelled(ctx, run, "the card was declined")
	}
	if err := s.recordPayment(ctx, run); err != nil {
		return fsm.Outcome{}, err
	}
	parcels := make([]fsm.ChildSpec, len(run.State.Items))
	for i, item := range run.State.Items {
		parcels[i] = fsm.ChildOf(s.parcel, Parcel{Order: run.State.Number, Item: item}, nil)
	}
	return run.Spawn(parcels...).Then("close"), nil
}

// recordPayment is a unit of work: rows, the outbox and a hook commit together.
func (s *Shop) recordPayment(ctx context.Context, run *fsm.Run[Order]) error {
	return s.eng.Update(ctx, func(tx *perdure.Tx) error {
		order, err := tx.Get(s.tables.Orders, run.State.Number)
		if err != nil || order.String("status") != "placed" { // the step runs again after a crash
			return err
		}
		_ = tx.UpdateRow(order, schema.Values{"status": "paid"}) // Update returns the error
		_, _ = tx.Create(s.tables.Payments, schema.Values{"order": order, "cents": run.State.Cents})
		_, err = s.invoice.TriggerIn(tx, Notice{Order: run.State.Number, Text: "paid"}, nil)
		return err
	})
}

func (s *Shop) cancelled(ctx context.Context, run *fsm.Run[Order], why string) (fsm.Outcome, error) {
	err := s.setStatus(ctx, run.State.Number, "cancelled", func(tx *perdure.Tx) error {
		_, err := s.warehouse.TriggerIn(tx, Notice{Order: run.State.Number, Text: "put back: " + why}, nil)
		return err
	})
	return run.Done(map[string]string{"cancelled": why}), err
}

// close notifies the customer when all parcels are shipped.
func (s *Shop) close(ctx context.Context, run *fsm.Run[Order]) (fsm.Outcome, error) {
	parcels, err := run.Children(ctx)
	if err != nil {
		return fsm.Outcome{}, err
	}
	for _, p := range parcels {
		if p.Status != fsm.Done {
			return run.Stop("a parcel was lost: " + p.Error), nil
		}
		var label string
		if err := p.Decode(&label); err != nil {
			return fsm.Outcome{}, err
		}
		run.State.Parcels = append(run.State.Parcels, label)
	}
	err = s.setStatus(ctx, run.State.Number, "shipped", func(tx *perdure.Tx) error {
		_, err := task.SendEmailIn(tx, task.Email{
			From: "shop@example.com", To: run.State.Customer + "@example.com", Subject: "Order " + run.State.Number + " has shipped",
			Text: fmt.Sprintf("Hello %s,\n\nyour parcels: %v\n", run.State.Customer, run.State.Parcels),
		}, nil)
		return err
	})
	return run.Done(map[string]int{"parcels": len(parcels)}), err
}

// setStatus changes the status of an order, once, together with the changes in and.
func (s *Shop) setStatus(ctx context.Context, number, status string, and func(*perdure.Tx) error) error {
	return s.eng.Update(ctx, func(tx *perdure.Tx) error {
		order, err := tx.Get(s.tables.Orders, number)
		if err != nil || order.String("status") == status {
			return err
		}
		_ = tx.UpdateRow(order, schema.Values{"status": status}) // Update returns the error
		return and(tx)
	})
}

// pack replays its step with probability 1/2 in the first three attempts, as if it searched
// for the item. An anvil always fails.
func (s *Shop) pack(_ context.Context, run *fsm.Run[Parcel]) (fsm.Outcome, error) {
	if run.State.Item == "anvil" {
		return fsm.Outcome{}, errAnvil
	}
	if run.Attempt < 4 && s.chance(0.5) {
		return run.Replay(s.between(time.Second, 4*time.Second)), nil
	}
	return run.Next("label"), nil
}

func (s *Shop) label(_ context.Context, run *fsm.Run[Parcel]) (fsm.Outcome, error) {
	return run.Done(run.State.Item + "-" + run.ID[len(run.ID)-4:]), nil
}

// count and sendReport are the steps of the report that the schedule starts.
func (s *Shop) count(ctx context.Context, run *fsm.Run[Report]) (fsm.Outcome, error) {
	return run.Next("send"), s.pause(ctx, s.between(0, time.Second))
}

func (s *Shop) sendReport(ctx context.Context, run *fsm.Run[Report]) (fsm.Outcome, error) {
	err := s.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := task.SendSMSIn(tx, task.SMS{To: "+491701234567", Body: run.State.Name + " is done"}, nil)
		return err
	})
	return run.Done(nil), err
}
