// Package audit describes acts: what an operator or a token changes over HTTP, with
// the command line or in the dashboard. The transaction that does an act also writes
// its entries, so neither exists without the other.
//
// The entries of a transaction are appended to one of a fixed number of chains. Each
// entry has the hash of its own content and of the entry before it in its chain, and
// each chain has a row with its last hash. So a change or a gap is found by computing
// the hashes again. A transaction takes any chain that no other transaction holds, so
// acts do not wait for each other.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Chains is how many chains there are, numbered from 1. A migration creates them.
const Chains = 64

// Entry is one act on one thing.
type Entry struct {
	// ID names the entry and orders entries by time.
	ID string
	// Chain and Seq are its place. They are given when it is written.
	Chain int
	Seq   int64
	At    time.Time
	// Action is the operation, for example cancel-instance.
	Action string
	// Kind and Target are what it was done to, for example instances and an id.
	Kind, Target string
	// Principal is the token, or who else; Label is its name, Role its role.
	Principal, Label, Role string
	// Via is how it was done: http, dashboard, socket or cli. Address is from where.
	Via, Address string
	// Request is the id of the HTTP request.
	Request string
	// Reason is what the operator gave as the reason.
	Reason string
	// Input is what was asked for; Before and After are the thing before and after.
	// Each is JSON, or empty.
	Input, Before, After string
	// Hash is that of the entry and of all entries before it in its chain.
	Hash []byte
}

// Target is a thing that an act was done to.
type Target struct {
	Kind, ID string
	// Before and After are the thing as JSON, or nil.
	Before, After json.RawMessage
}

// Act is what an operator or a token does with one request. It belongs to one goroutine until the
// unit of work that does it is committed.
type Act struct {
	Entry // what the entries of all targets have in common
	// NewID makes the ids of entries.
	NewID func() string
	// ReadBefore and ReadAfter return statements that read the targets. The unit of work runs
	// them first and last. They may be nil.
	ReadBefore, ReadAfter func() []sqldb.Stmt
	// Targets returns what the act was done to, once its statements have run.
	Targets func() []Target

	made []Target
}

// Made says that the act has created a thing, which Targets need not tell.
func (a *Act) Made(t Target) {
	if a != nil {
		a.made = []Target{t}
	}
}

// Piece returns an act that is a part of this one, done at a time to one thing. A target
// without an id is the first one of the act.
func (a *Act) Piece(at time.Time, t Target) *Act {
	piece := *a
	piece.At = at
	if t.ID == "" {
		if all := a.targets(); len(all) > 0 {
			t.Kind, t.ID = all[0].Kind, all[0].ID
		}
	}
	piece.made = []Target{t}
	return &piece
}

// targets returns what the act was done to.
func (a *Act) targets() []Target {
	if a.made != nil {
		return a.made
	}
	return a.Targets()
}

// By says who acts, if that is known only when it is done.
func (a *Act) By(principal, label, role string) {
	if a != nil {
		a.Principal, a.Label, a.Role = principal, label, role
	}
}

// Entries returns the entries of the act, to be called when its statements have run.
func (a *Act) Entries() []Entry {
	targets := a.targets()
	entries := make([]Entry, len(targets))
	for i, t := range targets {
		e := a.Entry
		e.ID, e.At = a.NewID(), a.At.UTC().Truncate(time.Microsecond)
		if t.Kind != "" {
			e.Kind = t.Kind
		}
		e.Target, e.Before, e.After = t.ID, string(t.Before), string(t.After)
		if i > 0 {
			e.Input = "" // the first entry of the request has it
		}
		entries[i] = e
	}
	return entries
}

type actKey struct{}

// With returns a context whose units of work do an act.
func With(ctx context.Context, a *Act) context.Context { return context.WithValue(ctx, actKey{}, a) }

// Of returns the act of a context, or nil.
func Of(ctx context.Context) *Act {
	a, _ := ctx.Value(actKey{}).(*Act)
	return a
}

// Without returns a context for work beside the act.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, actKey{}, (*Act)(nil))
}

type actionKey struct{}

// WithAction returns a context in which acts have this name instead of the name of the
// operation of the API.
func WithAction(ctx context.Context, action string) context.Context {
	return context.WithValue(ctx, actionKey{}, action)
}

// ActionOf returns the name that WithAction gave the acts of a context, or nothing.
func ActionOf(ctx context.Context) string {
	name, _ := ctx.Value(actionKey{}).(string)
	return name
}
