package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/schema"
)

var (
	customers = []string{"ada", "bea", "carl", "dora", "emil", "fay", "gus", "hedy"}
	goods     = []string{"tea", "cups", "pot", "lamp", "chair", "book", "kite"}
)

// Run simulates customers until ctx is done.
func (s *Shop) Run(ctx context.Context) error {
	if err := errors.Join(s.schedule(ctx), s.open(ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	for i := 0; ; i++ {
		if err := errors.Join(s.happen(ctx), s.ride(ctx)); err != nil && ctx.Err() == nil {
			s.options.OnError(err)
		}
		if i%100 == 0 {
			s.mailbox.tidy()
		}
		if err := s.pause(ctx, s.between(s.options.Every/2, s.options.Every*3/2)); err != nil {
			return nil // an interruption is the normal end
		}
	}
}

// schedule sets the schedules of the shop.
func (s *Shop) schedule(ctx context.Context) error {
	err := fsm.SetSchedule(ctx, s.eng, "report-every-minute", "* * * * *", s.report, Report{Name: "the report of the minute"}, nil)
	if err != nil {
		return err
	}
	return fsm.SetSchedule(ctx, s.eng, "report-on-weekdays", "0 9 * * mon-fri", s.report, Report{Name: "the report of the day"},
		&fsm.ScheduleOptions{Zone: "Europe/Berlin"})
}

// happen places one order, and answers for its customer.
func (s *Shop) happen(ctx context.Context) error {
	order := s.think()
	id, err := s.Place(ctx, order)
	if err != nil {
		return fmt.Errorf("place order %s: %w", order.Number, err)
	}
	return s.answer(ctx, id)
}

// think returns a random order. One in thirty cannot be packed.
func (s *Shop) think() Order {
	o := Order{Number: fmt.Sprintf("A-%d", s.number.Add(1)), Customer: customers[s.pick(len(customers))]}
	for range 1 + s.pick(3) {
		o.Items = append(o.Items, goods[s.pick(len(goods))])
		o.Cents += 100 + s.pick(9900)
	}
	if s.chance(1.0 / 30) {
		o.Items = append(o.Items, "anvil")
	}
	return o
}

func (s *Shop) pick(n int) int { return min(int(s.options.Random()*float64(n)), n-1) }

// Place commits an order: its row, the entry in the outbox, a hook for later and its
// instance, together.
func (s *Shop) Place(ctx context.Context, o Order) (id string, err error) {
	var started *fsm.Started
	err = s.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		_, _ = tx.Create(s.tables.Orders, schema.Values{ // Update returns the error
			"id": o.Number, "customer": o.Customer, "cents": o.Cents, "status": "placed",
		})
		_, _ = s.warehouse.TriggerIn(tx, Notice{Order: o.Number, Text: "take inventory"}, &hook.TriggerOptions{Delay: 45 * time.Second})
		started, err = fsm.StartIn(tx, s.order, o, &fsm.StartOptions{Unique: o.Number})
		return err
	})
	if err != nil {
		return "", err
	}
	s.placed.Add(1)
	return started.ID, nil
}

// answer makes most customers pay, some decline, and some forget.
func (s *Shop) answer(ctx context.Context, id string) error {
	name := "paid"
	switch draw := s.options.Random(); {
	case draw < 0.1:
		return nil
	case draw < 0.2:
		name = "declined"
	}
	_, err := fsm.Send(ctx, s.eng, id, name, map[string]string{"by": "card"}, nil)
	var ended *perdure.StateError
	if errors.As(err, &ended) {
		return nil
	}
	return err
}
