// Package audit describes acts: changes that an operator or an API token makes over HTTP,
// with the command line or in the dashboard. The transaction that performs an act also
// writes its entries, so neither exists without the other.
//
// The entries of a transaction are appended to one of a fixed number of chains. Each entry
// has the hash of its own content and of the previous entry in its chain, and each chain
// has a row with its last hash. A change or a gap is found by computing the hashes again. A
// transaction takes any chain that no other transaction has locked, so acts do not wait for
// each other.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Chains is the number of chains, numbered from 1. A migration creates them.
const Chains = 64

// Entry is one act on one target.
type Entry struct {
	// ID identifies the entry and orders entries by time.
	ID string
	// Chain and Seq are its position. They are set when it is written.
	Chain int
	Seq   int64
	At    time.Time
	// Action is the operation, for example cancel-instance.
	Action string
	// Kind and Target identify the target, for example instances and an id.
	Kind, Target string
	// Principal is the API token or another principal. Label is its name, Role its role.
	Principal, Label, Role string
	// Via is the way of access: http, dashboard, socket or cli. Address is the client's
	// address.
	Via, Address string
	// Request is the id of the HTTP request.
	Request string
	// Reason is the reason that the operator gave.
	Reason string
	// Input is the requested change. Before and After are the target before and after the
	// act. Each is JSON, or empty.
	Input, Before, After string
	// Hash is the hash of the entry and of all earlier entries in its chain.
	Hash []byte
}

// Target is the target of an act.
type Target struct {
	Kind, ID string
	// Before and After are the target as JSON, or nil.
	Before, After json.RawMessage
}

// Act is the work of an operator or an API token in one request. It belongs to one
// goroutine until its unit of work is committed.
type Act struct {
	Entry // the fields that the entries of all targets share
	// NewID returns ids for entries.
	NewID func() string
	// ReadBefore and ReadAfter return statements that read the targets. The unit of work runs
	// them first and last. They may be nil.
	ReadBefore, ReadAfter func() []sqldb.Stmt
	// Targets returns the targets of the act. It is called after the act's statements have
	// run.
	Targets func() []Target

	made []Target
}

// Made records that the act has created a target. It replaces the result of Targets.
func (a *Act) Made(t Target) {
	if a != nil {
		a.made = []Target{t}
	}
}

// Piece returns a part of this act, which was done to one target at a time. If the target
// has no id, the first target of the act is used.
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

// targets returns the targets of the act.
func (a *Act) targets() []Target {
	if a.made != nil {
		return a.made
	}
	return a.Targets()
}

// By sets the principal, if it becomes known only during the act.
func (a *Act) By(principal, label, role string) {
	if a != nil {
		a.Principal, a.Label, a.Role = principal, label, role
	}
}

// Entries returns the entries of the act. Call it after the act's statements have run.
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

// With returns a context whose units of work perform an act.
func With(ctx context.Context, a *Act) context.Context { return context.WithValue(ctx, actKey{}, a) }

// Of returns the act of a context, or nil.
func Of(ctx context.Context) *Act {
	a, _ := ctx.Value(actKey{}).(*Act)
	return a
}

// Without returns a context for work that is not part of the act.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, actKey{}, (*Act)(nil))
}

type actionKey struct{}

// WithAction returns a context in which acts have this name instead of the name of the API
// operation.
func WithAction(ctx context.Context, action string) context.Context {
	return context.WithValue(ctx, actionKey{}, action)
}

// ActionOf returns the name that WithAction set, or the empty string.
func ActionOf(ctx context.Context) string {
	name, _ := ctx.Value(actionKey{}).(string)
	return name
}
