// Package sample is a small shop that uses all features of Perdure, as a demonstration.
// Orders are placed and paid, parcels are packed, email is sent through a provider that
// often fails, and some work fails permanently.
//
// "perdure dev" runs it. The shop uses Perdure like any other program.
package sample

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// Namespace is the namespace of the shop's hooks.
const Namespace = "shop"

// Lease is the default lease of the shop's work.
const Lease = 30 * time.Second

// Options configure a Shop. The zero value of every field is its default.
type Options struct {
	// Every is the interval between random events. Default: one second.
	Every time.Duration
	// Lease is the lease of the shop's hooks. Default: Lease.
	Lease time.Duration
	// Sent is the directory of the email and SMS that were sent. Default: data/sent.
	Sent string
	// Random returns numbers in [0, 1). Default: a random source.
	Random func() float64
	// OnError receives background errors. Default: they are ignored.
	OnError func(error)
}

// Tables are the shop's own tables. The engine must be opened with their schema.
type Tables struct {
	Schema           *schema.Schema
	Orders, Payments *schema.Table
}

// NewTables describes the shop's tables.
func NewTables() *Tables {
	orders := schema.NewTable("orders",
		schema.String("customer"), schema.Int("cents"), schema.String("status"), schema.Time("placed").DefaultNow())
	payments := schema.NewTable("payments",
		schema.Ref("order", orders), schema.Int("cents"), schema.Time("at").DefaultNow())
	return &Tables{Schema: schema.New("shop", orders, payments), Orders: orders, Payments: payments}
}

// Shop is the sample, on one engine.
type Shop struct {
	eng     *perdure.Engine
	clock   clock.Clock
	options Options
	tables  *Tables

	order  *fsm.Definition[Order]
	parcel *fsm.Definition[Parcel]
	report *fsm.Definition[Report]
	hooks  *hook.Hooks
	// The hooks, each with its handler here.
	invoice, warehouse *hook.Hook[Notice]
	mailbox            *Mailbox
	actors             *actor.Actors
	alarms             *alarm.Alarms
	remind             *alarm.Type[Reminder]

	number, placed atomic.Int64
}

// New returns the shop of an engine that was opened with the tables.
func New(eng *perdure.Engine, tables *Tables, options Options) (*Shop, error) {
	edge.Default(&options.Every, time.Second)
	edge.Default(&options.Sent, "data/sent")
	edge.Default(&options.Lease, Lease)
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.OnError == nil {
		options.OnError = func(error) {}
	}
	s := &Shop{eng: eng, clock: host.Of(eng).Clock, options: options, tables: tables, mailbox: &Mailbox{dir: options.Sent}}
	s.number.Store(s.clock.Now().Unix() % 1_000_000 * 10)
	s.defineMachines()
	if err := s.defineHooks(); err != nil {
		return nil, fmt.Errorf("define the shop's hooks: %w", err)
	}
	if err := s.defineActors(); err != nil {
		return nil, fmt.Errorf("define the shop's actors: %w", err)
	}
	return s, nil
}

// Definitions returns the shop's state machines.
func (s *Shop) Definitions() []fsm.Definer { return []fsm.Definer{s.order, s.parcel, s.report} }

// Hooks returns the shop's hooks.
func (s *Shop) Hooks() *hook.Hooks { return s.hooks }

// Actors returns the shop's bikes.
func (s *Shop) Actors() *actor.Actors { return s.actors }

// Alarms returns the shop's alarms.
func (s *Shop) Alarms() *alarm.Alarms { return s.alarms }

// Senders returns the shop's providers of email and SMS.
func (s *Shop) Senders() map[string]task.Sender {
	return map[string]task.Sender{"email": s.flaky(0.3, task.Files(s.options.Sent)), "sms": s.flaky(0.1, task.Files(s.options.Sent))}
}

// Mailbox returns the sent messages.
func (s *Shop) Mailbox() *Mailbox { return s.mailbox }

// Placed returns the number of orders that this process has placed.
func (s *Shop) Placed() int64 { return s.placed.Load() }

// chance returns true with probability p.
func (s *Shop) chance(p float64) bool { return s.options.Random() < p }

// between returns a random duration between least and most.
func (s *Shop) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.options.Random()*float64(most-least))
}

// pause waits for d, at most until ctx is done.
func (s *Shop) pause(ctx context.Context, d time.Duration) error {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
