package perdure

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/schema"
)

// Options configure an Engine. The zero value of every field is its default.
type Options struct {
	// Schemas describe the application's tables. Open creates missing tables and columns.
	// Default: none.
	Schemas []*schema.Schema
	// Outbox records every unit of work in the outbox. Default: false. The outbox can be
	// read either way. All processes that write the same tables must use the same value:
	// the outbox lacks units that a process without it commits.
	Outbox bool
	// OutboxRetention is the minimum time that entries of the outbox are kept. Entries
	// that a registered consumer has not acknowledged are kept longer. Default: 0, which
	// keeps all entries.
	OutboxRetention time.Duration
	// NoMigrate makes Open refuse a database that lacks migrations instead of
	// applying them, for deployments that run "perdure migrate". Default: false.
	NoMigrate bool
	// NoListener opens no connection, and runs no query, to be woken by other processes. Their
	// work is then found by polling: see dispatch.PollerOptions. Work of this process starts
	// immediately either way. It is for a transaction pooler, which does not pass
	// notifications on, and for databases with few connections. Default: false.
	NoListener bool
	// MaxAttempts is the maximum number of times that Update runs its function. Update
	// runs it again if rows that it read have changed, or after a transient error of the
	// database. Default: 10.
	MaxAttempts int
	// Timeout bounds Update: all runs of its function, and all waits for locks of other
	// transactions. It bounds View in the same way. Default: 30 seconds.
	Timeout time.Duration
	// NewID returns a new id. It is used for units, and for rows that are created without
	// an external id. Default: UUID version 7.
	NewID func() string
	// Keys encrypt payloads at rest: the payloads of hooks and alarms, the states,
	// results and signals of state machines, and the inputs, snapshots and logs of
	// actors. All processes of a database need the same keys. Default: new payloads are
	// not encrypted; existing encrypted payloads are not changed.
	Keys *Keys
	// TracerProvider provides the spans in which durable work runs. Each span links to
	// the span in which the work was requested. Default: the provider set by
	// otel.SetTracerProvider, if any.
	TracerProvider trace.TracerProvider
	// Clock is the source of the current time. Default: the system clock. The type is
	// internal: tests set it through package perduretest.
	Clock clock.Clock
}

// Keys are keys for the encryption of payloads at rest. Printing Keys does not reveal
// them.
type Keys = seal.Ring

// ParseKeys parses keys of the form id:base64, 32 bytes each, separated by commas or
// white space. The first key encrypts, and all keys decrypt: to replace a key, put the
// new key first. If text has no keys, ParseKeys returns nil.
func ParseKeys(text string) (*Keys, error) { return seal.Parse(text) }

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.MaxAttempts == 0 {
		options.MaxAttempts = 10
	}
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	if options.NewID == nil {
		options.NewID = newID
	}
	if options.Clock == nil {
		options.Clock = clock.System
	}
	return options
}

func (o Options) validate() error {
	if o.MaxAttempts < 1 {
		return fault.Invalidf("Options.MaxAttempts", "must be at least 1, got %d", o.MaxAttempts)
	}
	if o.Timeout < 0 {
		return fault.Invalidf("Options.Timeout", "must not be negative, got %v", o.Timeout)
	}
	if o.OutboxRetention < 0 {
		return fault.Invalidf("Options.OutboxRetention", "must not be negative, got %v", o.OutboxRetention)
	}
	return o.validateSchemas()
}

// maxTableName is MySQL's limit for the length of a table name, including the schema
// name.
const maxTableName = 64

// validateSchemas returns an error if a schema is invalid or conflicts with another. On
// some databases, the full name of a table is its schema name joined with its own name,
// and case does not count.
func (o Options) validateSchemas() error {
	schemas, tables := map[string]bool{}, map[string]bool{}
	for _, s := range o.Schemas {
		if err := s.Validate(); err != nil {
			return err
		}
		name := strings.ToLower(s.Name())
		if schemas[name] {
			return fault.Invalidf("schema "+s.Name(), "must not be listed twice")
		}
		schemas[name] = true
		for _, t := range s.Tables() {
			full := name + "_" + strings.ToLower(t.Name())
			if tables[full] {
				return fault.Invalidf("table "+t.Name(), "of schema %s has the full name of another table", s.Name())
			}
			tables[full] = true
			if len(full) > maxTableName {
				return fault.Invalidf("table "+t.Name(), "must have at most %d characters together with its schema %s", maxTableName, s.Name())
			}
			if err := o.validateRefs(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o Options) validateRefs(t *schema.Table) error {
	for _, c := range t.Columns() {
		if c.Table() != nil && !slices.Contains(o.Schemas, c.Table().Schema()) {
			return fault.Invalidf(t.Name()+"."+c.Name(), "refers to a table of schema %s, which is not in Options.Schemas", c.Table().Schema().Name())
		}
	}
	return nil
}

// newID returns a UUID version 7. It is unique without coordination. It sorts in order of
// creation, which keeps indexes compact.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
