package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

// The tables of the examples.
var (
	Orders = schema.NewTable("orders", schema.String("item"), schema.String("status").Default("open"))
	Shop   = schema.New("shop", Orders)
)

// Reminder is the payload of an alarm.
type Reminder struct {
	Order string `json:"order"`
	Item  string `json:"item"`
}

// remind is a handler: it is called when an alarm of its type is due.
func remind(ctx context.Context, r Reminder) error {
	fmt.Println("remind of", r.Item, "attempt", alarm.FromContext(ctx).Attempt)
	return nil
}

// An alarm that is scheduled with an order, and cancelled when it is paid.
func Example() {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Schemas: []*schema.Schema{Shop}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	alarms, err := alarm.New(eng, nil)
	if err != nil {
		panic(err)
	}
	reminder, err := alarm.Handle(alarms, "remind", remind, nil)
	if err != nil {
		panic(err)
	}
	dispatcher, err := dispatch.NewWaker(alarms, nil) // sleeps until the next due time
	if err != nil {
		panic(err)
	}
	dispatcher.Start()
	defer dispatcher.Stop(ctx)

	var order string
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		order, err = tx.Create(Orders, schema.Values{"item": "tea"})
		if err != nil {
			return err
		}
		return reminder.ScheduleIn(tx, alarm.Of("order", order, "reminder"), Reminder{Order: order, Item: "tea"},
			&alarm.ScheduleOptions{Delay: 24 * time.Hour})
	})
	if err != nil {
		panic(err)
	}

	err = eng.Update(ctx, func(tx *perdure.Tx) error { // the payment arrived in time
		if err := tx.Update(Orders, order, schema.Values{"status": "paid"}); err != nil {
			return err
		}
		return alarms.CancelIn(tx, alarm.Of("order", order, "reminder"))
	})
	if err != nil {
		panic(err)
	}
	_, err = alarms.Next(ctx, alarm.Filter{})
	fmt.Println(err)
	// Output:
	// alarm "next" does not exist
}

// An alarm that recurs. Nobody was there for three hours, so one fire stands for
// all that were missed.
func Example_recurring() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	alarms, err := alarm.New(eng, nil)
	if err != nil {
		panic(err)
	}
	report, err := alarm.Handle(alarms, "report", func(ctx context.Context, to string) error {
		info := alarm.FromContext(ctx)
		fmt.Printf("report of %s to %s, %d missed, next at %s\n", info.Scheduled.Format("15:04"), to, info.Missed, info.Next.Format("15:04"))
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}
	// Every process may do this at startup: equal recurrences keep their ticks.
	err = report.Schedule(ctx, alarm.ID("hourly-report"), "ada@example.org", &alarm.ScheduleOptions{
		Cron: "0 * * * *", Zone: "Europe/Berlin", Missed: perdure.MissedOnce,
	})
	if err != nil {
		panic(err)
	}

	for _, later := range []time.Duration{time.Minute, 3*time.Hour + time.Minute} {
		clock.Advance(later)
		if _, err := alarms.Process(ctx); err != nil { // usually a dispatcher calls Process
			panic(err)
		}
	}
	// Output:
	// report of 12:00 to ada@example.org, 0 missed, next at 13:00
	// report of 15:00 to ada@example.org, 2 missed, next at 16:00
}

// Alarms are data: list what will fire, move it, fire it, retry what died.
func Example_operate() {
	ctx := context.Background()
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(ctx, "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	alarms, err := alarm.New(eng, nil)
	if err != nil {
		panic(err)
	}
	up := false
	_, err = alarm.Handle(alarms, "charge", func(context.Context, int) error {
		if up {
			return nil
		}
		return errors.New("bank is away")
	}, nil)
	if err != nil {
		panic(err)
	}
	charge := alarm.Of("subscription", "7", "charge")
	err = alarms.Schedule(ctx, charge, "charge", 990, &alarm.ScheduleOptions{Delay: time.Hour, Retry: retry.None()})
	if err != nil {
		panic(err)
	}

	upcoming, _, err := alarms.Upcoming(ctx, alarm.Filter{ActorType: "subscription", ActorID: "7"}, "", 0)
	if err != nil {
		panic(err)
	}
	for _, r := range upcoming {
		fmt.Println(r.Key, "fires at", r.Due.Format(time.TimeOnly))
	}
	if err := alarms.FireNow(ctx, charge); err != nil {
		panic(err)
	}
	if _, err := alarms.Process(ctx); err != nil {
		panic(err)
	}
	dead, err := alarms.Get(ctx, charge)
	if err != nil {
		panic(err)
	}
	fmt.Println(dead.Status, "-", dead.Error)

	up = true
	retried, err := alarms.RetryAll(ctx, alarm.Filter{Type: "charge"})
	if err != nil {
		panic(err)
	}
	fired, err := alarms.Process(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(retried, "retried,", fired, "fired")
	// Output:
	// subscription/7/charge fires at 13:00:00
	// failed - bank is away
	// 1 retried, 1 fired
}

// An alarm that needs no Go handler: its fire is a signed message to a URL. An
// application that speaks HTTP only can use alarms so.
func Example_webhook() {
	sender, err := alarm.NewSender("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	alarms, err := alarm.New(eng, &alarm.Options{Sender: sender})
	if err != nil {
		panic(err)
	}
	err = alarms.Schedule(ctx, alarm.Of("cart", "9", "abandoned"), alarm.Webhook, map[string]int{"items": 3}, &alarm.ScheduleOptions{
		Delay: 2 * time.Hour, Webhook: "https://example.org/cart-abandoned",
	})
	if err != nil {
		panic(err)
	}
	next, err := alarms.Next(ctx, alarm.Filter{ActorType: "cart"})
	fmt.Println(next.Key, "->", next.Webhook, err)
	// Output:
	// cart/9/abandoned -> https://example.org/cart-abandoned <nil>
}

// TestAReminderIsSentAfterADay is a test as an application would have it.
func TestAReminderIsSentAfterADay(t *testing.T) {
	clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(t.Context(), "sqlite::memory:", &perdure.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	alarms, err := alarm.New(eng, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	reminder, err := alarm.Handle(alarms, "remind", func(_ context.Context, r Reminder) error {
		sent = append(sent, r.Item)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := alarm.Of("order", "1", "reminder")
	err = reminder.Schedule(t.Context(), key, Reminder{Order: "1", Item: "tea"}, &alarm.ScheduleOptions{Delay: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	scheduled := perduretest.RequireScheduled[Reminder]
	if r := scheduled(t, eng, key); r.Item != "tea" {
		t.Errorf("the reminder is of %s", r.Item)
	}
	perduretest.Drain(t, alarms)
	clock.Advance(24 * time.Hour)
	perduretest.Drain(t, alarms)
	if len(sent) != 1 || sent[0] != "tea" {
		t.Errorf("sent were %v", sent)
	}
}
