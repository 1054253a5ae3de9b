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
	// Schemas describe the application's tables. Open creates what is missing.
	// Default: none.
	Schemas []*schema.Schema
	// Outbox records every unit of work in the outbox. Default: false. The
	// outbox can be read either way. All processes that write the same tables
	// must agree: a unit that is committed without the outbox is not in it.
	Outbox bool
	// OutboxRetention is how long entries of the outbox are kept. Entries that
	// a registered consumer has not acknowledged are kept longer. Default: 0,
	// for ever.
	OutboxRetention time.Duration
	// NoMigrate makes Open refuse a database that lacks migrations instead of
	// applying them, for deployments that run "perdure migrate". Default: false.
	NoMigrate bool
	// MaxAttempts is how often Update runs its function when rows that it
	// read have changed, or the database asked to try again. Default: 10.
	MaxAttempts int
	// Timeout bounds one transaction, the function of Update included.
	// Default: 30 seconds.
	Timeout time.Duration
	// NewID makes the external ids of rows that are created without one, and
	// the ids of units. Default: UUID version 7.
	NewID func() string
	// Keys encrypt payloads at rest: those of hooks and alarms, the states, results
	// and signals of state machines, the inputs, snapshots and logs of actors. All
	// processes of a database need the same ones. Default: nothing is encrypted;
	// what was encrypted before is left alone.
	Keys *Keys
	// TracerProvider makes the spans in which durable work is run; they lead back
	// to the span in which it was asked for. Default: that of the program, by
	// otel.SetTracerProvider, or none.
	TracerProvider trace.TracerProvider
	// Clock tells the time. Default: the machine's. The type is internal: tests
	// set it through package perduretest.
	Clock clock.Clock
}

// Keys are keys for the encryption of payloads at rest. They do not show
// themselves when they are printed.
type Keys = seal.Ring

// ParseKeys reads keys of the form id:base64, 32 bytes each, with commas or white
// space between them. The first one encrypts; all of them decrypt, so a key is
// replaced by putting a new one in front. No keys are nil.
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
		return fault.Invalidf("Options.MaxAttempts", "is %d; at least 1 is needed", o.MaxAttempts)
	}
	if o.Timeout < 0 {
		return fault.Invalidf("Options.Timeout", "is negative")
	}
	if o.OutboxRetention < 0 {
		return fault.Invalidf("Options.OutboxRetention", "is negative")
	}
	return o.validateSchemas()
}

// maxTableName is MySQL's limit for the name of a table, schema included.
const maxTableName = 64

// validateSchemas refuses schemas that are wrong in themselves or together. On
// some databases the name of a table is that of its schema and its own, joined,
// in whatever case.
func (o Options) validateSchemas() error {
	schemas, tables := map[string]bool{}, map[string]bool{}
	for _, s := range o.Schemas {
		if err := s.Validate(); err != nil {
			return err
		}
		name := strings.ToLower(s.Name())
		if schemas[name] {
			return fault.Invalidf("schema "+s.Name(), "is described twice")
		}
		schemas[name] = true
		for _, t := range s.Tables() {
			full := name + "_" + strings.ToLower(t.Name())
			if tables[full] {
				return fault.Invalidf("table "+t.Name(), "of the schema %s has the full name of another table", s.Name())
			}
			tables[full] = true
			if len(full) > maxTableName {
				return fault.Invalidf("table "+t.Name(), "has, with its schema %s, a name of more than %d characters", s.Name(), maxTableName)
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
			return fault.Invalidf(t.Name()+"."+c.Name(), "refers to a table of the schema %s, which is not among Options.Schemas", c.Table().Schema().Name())
		}
	}
	return nil
}

// newID returns a UUID of version 7: unique without coordination, and in the
// order of creation, which keeps indexes compact.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
