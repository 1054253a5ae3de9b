package task

import (
	"bytes"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
)

// Ticket identifies a task or a send that was recorded in a unit of work. Its ID is set
// when the unit is committed, or when the unit reads something. In the database it is a
// number.
type Ticket struct{ ID string }

// EnqueueOptions set the due time of a task. The zero value of every field is its
// default.
type EnqueueOptions struct {
	// At is the due time. In the past: now. Default: now.
	At time.Time
	// Delay is the time until the task is due, by the database's clock. Set At or
	// Delay, not both. Default: 0.
	Delay time.Duration
}

// EnqueueIn records a task in the unit of work. The payload is stored as JSON and must
// be an object. On PostgreSQL the functions of a business process call queues.enqueue
// instead. EnqueueIn is for functions on SQLite, and for starting a business process.
func EnqueueIn(tx *perdure.Tx, taskType string, payload any, options *EnqueueOptions) (*Ticket, error) {
	raw, err := edge.Marshal("payload of task "+taskType, payload, 0)
	if err == nil {
		err = checkTask(taskType, raw)
	}
	if err != nil {
		return nil, host.In(tx).Fail(err)
	}
	return record(tx, options, func(rt *host.Runtime, due store.Due, id func(int64)) []sqldb.Stmt {
		return append(rt.Store.TaskClock(rt.Now()), rt.Store.EnqueueTask(taskType, string(raw), due.At, due.Delay, rt.Now(), id))
	})
}

func checkTask(taskType string, payload []byte) error {
	switch {
	case !typeName.MatchString(taskType):
		return fault.Invalidf("task type", "must be a lower-case letter followed by up to 62 lower-case letters, digits and underscores")
	case !bytes.HasPrefix(payload, []byte("{")):
		return fault.Invalidf("payload of task "+taskType, "must be an object")
	}
	return nil
}

// record attaches statements that enqueue something to the unit, and wakes the workers
// when the unit is committed.
func record(tx *perdure.Tx, options *EnqueueOptions, stmts func(*host.Runtime, store.Due, func(int64)) []sqldb.Stmt) (*Ticket, error) {
	rt := host.In(tx).Runtime()
	var o EnqueueOptions
	if options != nil {
		o = *options
	}
	if err := o.validate(rt.DB.Dialect()); err != nil {
		return nil, host.In(tx).Fail(err)
	}
	due, hint := store.Due{Delay: o.Delay}, rt.Clock.Now().Add(o.Delay)
	if !o.At.IsZero() {
		at := o.At.UTC().Truncate(time.Microsecond)
		due.At, hint = &at, at
	}
	ticket := &Ticket{}
	err := host.In(tx).Attach(func() { rt.Hub.Publish(topic, hint) }, rt.Store.TraceTask(tracing.Of(tx.Context()), stmts(rt, due, func(n int64) { ticket.ID = text(n) }))...)
	return ticket, err
}

func (o EnqueueOptions) validate(d sqldb.Dialect) error {
	if err := supported(d); err != nil {
		return err
	}
	if err := edge.Delay("EnqueueOptions.Delay", o.Delay); err != nil {
		return err
	}
	if o.Delay != 0 && !o.At.IsZero() {
		return fault.Invalidf("EnqueueOptions", "must set At or Delay, not both")
	}
	return edge.Time("EnqueueOptions.At", o.At)
}
