package sample

import (
	"context"
	_ "embed" // the machine of a bike
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// bike is a machine that is data only: a bike that is rented, comes back late, and
// costs a fine every ten seconds then.
//
//go:embed bike.json
var bike []byte

// bikes is how many bikes the shop lends.
const bikes = 5

// Reminder is what an alarm of the shop is about.
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

// open puts the bikes out, and sets the alarms that ring again and again.
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

// ride lets somebody take a bike, or bring it back; a bike that is not there to
// take, or to bring back, ignores it.
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
