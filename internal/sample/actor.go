package sample

import (
	"context"
	_ "embed" // the statechart of a bike
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// bike is a stored statechart: a bike that is rented, returned late, and then costs a fine
// every ten seconds.
//
//go:embed bike.json
var bike []byte

// bikes is the number of bikes that the shop lends.
const bikes = 5

// Reminder is the payload of an alarm of the shop.
type Reminder struct {
	Text string `json:"text"`
}

var errDisplay = errors.New("display in the shop is off")

func (s *Shop) defineActors() (err error) {
	if s.actors, err = actor.New(s.eng, &actor.Options{Lease: s.options.Lease, OnError: s.options.OnError}); err != nil {
		return err
	}
	if s.alarms, err = alarm.New(s.eng, &alarm.Options{Lease: s.options.Lease, OnError: s.options.OnError}); err != nil {
		return err
	}
	s.remind, err = alarm.Handle(s.alarms, "remind", func(ctx context.Context, _ Reminder) error {
		if s.chance(0.2) {
			return errDisplay
		}
		return s.pause(ctx, s.between(20*time.Millisecond, 200*time.Millisecond))
	}, &alarm.HandlerOptions{Retry: retry.Fixed(3, 2*time.Second)})
	return err
}

// open spawns the bikes and schedules the recurring alarms.
func (s *Shop) open(ctx context.Context) error {
	if _, err := s.actors.StoreStatechart(ctx, "bike", bike, nil); err != nil {
		return fmt.Errorf("register the bike: %w", err)
	}
	for i := range bikes {
		_, err := s.actors.Spawn(ctx, bikeRef(i), actor.Caller{Kind: actor.Service, ID: "shop"}, nil, nil)
		var there *fault.Duplicate
		if err != nil && !errors.As(err, &there) {
			return fmt.Errorf("put out bike %d: %w", i, err)
		}
	}
	if err := s.remind.Schedule(ctx, alarm.ID("water-the-plants"), Reminder{Text: "water the plants"}, &alarm.ScheduleOptions{Every: 20 * time.Second}); err != nil {
		return err
	}
	return s.remind.Schedule(ctx, alarm.ID("lock-up"), Reminder{Text: "lock up"}, &alarm.ScheduleOptions{Cron: "0 18 * * *", Zone: "Europe/Berlin"})
}

func bikeRef(i int) actor.Ref { return actor.Ref{Type: "bike", ID: fmt.Sprint(i + 1)} }

// ride rents or returns a bike. A bike ignores an event that does not fit its state.
func (s *Shop) ride(ctx context.Context) error {
	event, customer := "RENT", customers[s.pick(len(customers))]
	if s.chance(0.4) {
		event = "RETURN"
	}
	_, err := s.actors.Send(ctx, bikeRef(s.pick(bikes)), actor.Caller{Kind: actor.Client, ID: customer}, statechart.Event{Type: event}, nil)
	if err != nil {
		return fmt.Errorf("ride: %w", err)
	}
	return s.remind.Schedule(ctx, alarm.ID("call-"+customer), Reminder{Text: "call " + customer}, &alarm.ScheduleOptions{Delay: 30 * time.Second})
}
