// Subscription is a trial that expires, as a durable actor. The statechart is in
// subscription.json, and its effects and invocations are here.
//
// It runs two subscriptions on a database in memory: one that is paid for, at the second
// attempt, and one whose trial ends.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

//go:embed subscription.json
var machine []byte

// Trial is the input of a subscription.
type Trial struct {
	Plan string `json:"plan"`
	// Trial is the duration of the trial, in milliseconds.
	Trial int64 `json:"trial"`
}

// Mail has the parameters of the action "mail".
type Mail struct {
	Template string `json:"template"`
	Invoice  string `json:"invoice"`
}

// Subscriptions has the external effects of subscriptions.
type Subscriptions struct {
	attempts atomic.Int32
	sent     chan string
}

// charge is an invocation: its result returns to the actor as an event. It may run more
// than once for the same payment, so it passes its key to the payment provider as the
// idempotency key.
func (s *Subscriptions) charge(_ context.Context, call actor.Call) (any, error) {
	if s.attempts.Add(1) == 1 {
		return nil, errors.New("the bank does not answer")
	}
	return "invoice of " + call.Actor.ID, nil
}

// mail is an effect: it runs after the commit, at least once.
func (s *Subscriptions) mail(_ context.Context, call actor.Call) error {
	var m Mail
	if err := call.Decode(&m); err != nil {
		return err
	}
	s.sent <- fmt.Sprintf("mail to %s: %s %s", call.Actor.ID, m.Template, m.Invoice)
	return nil
}

// register registers the statechart in this process, with the functions that it names.
func (s *Subscriptions) register(actors *actor.Actors) error {
	return actors.Register("subscription", machine, &actor.TypeOptions{
		Effects:     map[string]actor.Effect{"mail": {Run: s.mail}},
		Invocations: map[string]actor.Invocation{"charge": {Run: s.charge, Retry: retry.Exponential(5)}},
		// Customers may only pay and cancel.
		Events: map[actor.CallerKind][]string{actor.Client: {"PAY", "CANCEL"}},
	})
}

// run starts like a service, and then follows two customers.
func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	actors, err := actor.New(eng, nil)
	if err != nil {
		return err
	}
	s := &Subscriptions{sent: make(chan string, 10)}
	if err := s.register(actors); err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(actors, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	defer func() { _ = dispatcher.Stop(ctx) }()

	if err := s.subscribe(ctx, actors, "ada", time.Hour); err != nil {
		return err
	}
	ada := actor.Caller{Kind: actor.Client, ID: "ada"}
	_, err = actors.Send(ctx, actor.Ref{Type: "subscription", ID: "ada"}, ada, statechart.Event{Type: "PAY"}, &actor.SendOptions{Key: "click-1"})
	if err != nil {
		return err
	}
	if err := s.follow(ctx, out, actors, "ada", "active"); err != nil {
		return err
	}
	if err := s.subscribe(ctx, actors, "bob", 50*time.Millisecond); err != nil {
		return err
	}
	return s.follow(ctx, out, actors, "bob", "expired")
}

// subscribe starts a trial.
func (s *Subscriptions) subscribe(ctx context.Context, actors *actor.Actors, customer string, trial time.Duration) error {
	_, err := actors.Spawn(ctx, actor.Ref{Type: "subscription", ID: customer}, actor.Caller{Kind: actor.Client, ID: customer},
		Trial{Plan: "tea of the month", Trial: trial.Milliseconds()}, nil)
	return err
}

// follow waits until a subscription is in a state and its mail is sent.
func (s *Subscriptions) follow(ctx context.Context, out io.Writer, actors *actor.Actors, customer, state string) error {
	view, err := actors.Wait(ctx, actor.Ref{Type: "subscription", ID: customer}, actor.Caller{Kind: actor.Client, ID: customer},
		func(v actor.View) bool { return v.Value == state })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is %v\n", customer, view.Value)
	select {
	case mail := <-s.sent:
		fmt.Fprintln(out, mail)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
