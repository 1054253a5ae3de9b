package outbox

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

const (
	// PayloadVersion is the version of the payloads that this package writes. It is also
	// the only version that this package reads.
	PayloadVersion = 1
	// MaxMutations is the maximum number of mutations and events of one entry, because each
	// has its own user version.
	MaxMutations = 1 << 16
)

// Payload is the content of an entry: the mutations and the events of one unit of work,
// each in the order in which they were recorded. All returns both in one order.
type Payload struct {
	// Version is PayloadVersion.
	Version   int        `json:"version"`
	Mutations []Mutation `json:"mutations"`
	Events    []Event    `json:"events,omitempty"`
}

// Mutation is the change of one row. It uses the names of the schema, and only external
// ids.
type Mutation struct {
	Op Op `json:"op"`
	// Schema and Namespace name the schema of the table.
	Schema    string `json:"schema"`
	Namespace string `json:"namespace,omitempty"`
	Table     string `json:"table"`
	// ExternalID is the id of the row.
	ExternalID string `json:"externalId"`
	// Stamp is the stamp of the entry with this mutation's user version.
	Stamp Stamp `json:"versionstamp"`
	// Values has all columns of a created row. It is set only for Create.
	Values map[string]any `json:"values,omitempty"`
	// Set has the changed columns of a row. It is set only for Update.
	Set map[string]any `json:"set,omitempty"`
	// CheckVersion is the version that an update or a delete required. It is nil if there
	// was no such condition.
	CheckVersion *int64 `json:"checkVersion,omitempty"`
}

// Op is the operation of a mutation.
type Op string

// The operations.
const (
	Create Op = "create"
	Update Op = "update"
	Delete Op = "delete"
)

// RefMap maps placeholders to the external ids that they represent.
type RefMap map[string]string

// Placeholder represents a reference whose external id was not known when the mutation
// was recorded. It is the key "<op>.<column>" under which a RefMap has the external id,
// where op is the index of the mutation in the payload. In JSON it is {"__ref":
// "<op>.<column>"}.
type Placeholder string

// Ref returns the placeholder for a column of the mutation with index op.
func Ref(op int, column string) Placeholder {
	return Placeholder(strconv.Itoa(op) + "." + column)
}

const refKey = "__ref"

// standsIn reports whether raw is a JSON object that contains only p. It compares decoded
// values, because a database may format the text differently.
func (p Placeholder) standsIn(raw []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for _, want := range []json.Token{json.Delim('{'), refKey, string(p), json.Delim('}')} {
		if got, err := dec.Token(); err != nil || got != want {
			return false
		}
	}
	return true
}

func (p Payload) check() error {
	if p.Version != PayloadVersion {
		return fault.Invalidf("version", "must be %d, got %d", PayloadVersion, p.Version)
	}
	if p.Len() > MaxMutations {
		return fault.Invalidf("mutations", "must be at most %d, with the events", MaxMutations)
	}
	for i, m := range p.Mutations {
		if err := m.check(i); err != nil {
			return err
		}
	}
	for i, e := range p.Events {
		if err := e.check(eventPath(i)); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a mutation has fields that its operation does not allow.
func (m Mutation) check(op int) error {
	wrong := func(member, format string, args ...any) error {
		return fault.Invalidf(mutationPath(op)+"."+member, format, args...)
	}
	switch {
	case m.Op != Create && m.Op != Update && m.Op != Delete:
		return wrong("op", "must be a known operation")
	case m.Table == "":
		return wrong("table", "must not be empty")
	case m.ExternalID == "":
		return wrong("externalId", "must not be empty")
	case m.Op != Create && m.Values != nil:
		return wrong("values", "must not be part of %s", m.Op)
	case m.Op != Update && m.Set != nil:
		return wrong("set", "must not be part of %s", m.Op)
	case m.Op == Create && m.CheckVersion != nil:
		return wrong("checkVersion", "must not be part of %s", m.Op)
	}
	member, columns := m.columns()
	for column := range columns {
		if column == "" || edge.Reserved(column) {
			return wrong(member, "must not have a column with the name %q", column)
		}
	}
	return nil
}

// columns returns the columns that m has, and the JSON member that holds them.
func (m Mutation) columns() (member string, columns map[string]any) {
	switch m.Op {
	case Create:
		return "values", m.Values
	case Update:
		return "set", m.Set
	case Delete:
	}
	return "", nil
}
