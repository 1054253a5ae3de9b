package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/schema"
)

// replica is the expected content of the tables, computed from the entries. It is in
// memory.
type replica struct {
	schemas []*schema.Schema
	tables  map[string]map[string]*replicaRow // "schema.table", external id
}

type replicaRow struct {
	version int64
	values  map[string]any
}

func newReplica(schemas []*schema.Schema) *replica {
	return &replica{schemas: schemas, tables: map[string]map[string]*replicaRow{}}
}

// apply applies an entry's mutations.
func (r *replica) apply(entry Entry, report *Report) {
	for _, m := range entry.Payload.Mutations {
		name := m.Schema + "." + m.Table
		rows := r.tables[name]
		if rows == nil {
			rows = map[string]*replicaRow{}
			r.tables[name] = rows
		}
		if err := mutate(rows, m); err != nil {
			report.problem("mutation %s: %s %s: %v", m.Stamp, name, m.ExternalID, err)
		}
	}
}

func mutate(rows map[string]*replicaRow, m Mutation) error {
	row, exists := rows[m.ExternalID]
	if m.Op == Create {
		if exists {
			return fmt.Errorf("was created twice")
		}
		rows[m.ExternalID] = &replicaRow{values: m.Values}
		return nil
	}
	if !exists {
		return fmt.Errorf("does not exist when it is changed")
	}
	if m.CheckVersion != nil && *m.CheckVersion != row.version {
		return fmt.Errorf("was at version %d when version %d was checked", row.version, *m.CheckVersion)
	}
	if m.Op == Delete {
		delete(rows, m.ExternalID)
		return nil
	}
	row.version++
	row.values = maps.Clone(row.values)
	maps.Copy(row.values, m.Set)
	return nil
}

// compare reads the tables and reports every difference.
func (r *replica) compare(ctx context.Context, tx sqldb.Tx, b table.Builder, report *Report) error {
	external := map[*schema.Table]map[int64]string{}
	actual := map[*schema.Table][]*schema.Row{}
	for _, s := range r.schemas {
		for _, t := range s.Tables() {
			rows, ids, err := readAll(ctx, tx, b, t)
			if err != nil {
				return err
			}
			actual[t], external[t] = rows, ids
		}
	}
	for t, rows := range actual {
		name := t.Schema().Name() + "." + t.Name()
		want := r.tables[name]
		for _, row := range rows {
			report.Rows++
			if want[row.ID] == nil {
				report.problem("%s %q is in the table but not in the outbox", name, row.ID)
				continue
			}
			compareRow(name, row, want[row.ID], external, report)
			delete(want, row.ID)
		}
		for _, id := range slices.Sorted(maps.Keys(want)) {
			report.problem("%s %q is in the outbox but not in the table", name, id)
		}
	}
	return nil
}

func readAll(ctx context.Context, tx sqldb.Tx, b table.Builder, t *schema.Table) ([]*schema.Row, map[int64]string, error) {
	var rows []*schema.Row
	ids := map[int64]string{}
	find, err := b.Find(t, table.Query{}, func(error) {}, func(r *schema.Row) {
		rows = append(rows, r)
		ids[r.Internal()] = r.ID
	})
	if err != nil {
		return nil, nil, err
	}
	return rows, ids, tx.Run(ctx, find)
}

func compareRow(name string, row *schema.Row, want *replicaRow, external map[*schema.Table]map[int64]string, report *Report) {
	if row.Version != want.version {
		report.problem("%s %q is at version %d, but at version %d in the outbox", name, row.ID, row.Version, want.version)
	}
	values := row.Values()
	for _, c := range row.Table().Columns() {
		have := values[c.Name()]
		if ref, ok := have.(schema.Reference); ok {
			have = external[c.Table()][ref.Internal()]
		}
		expected, ok := want.values[c.Name()]
		if !ok { // the column was added later: existing rows have its default
			expected, _ = c.StaticDefault()
		}
		if c.Type() == schema.TypeDecimal { // other writers may use another form
			if normal, err := c.Normalize(c.Name(), expected); err == nil {
				expected = normal
			}
		}
		if !same(have, expected) {
			report.problem("%s %q has %s = %v, but %v in the outbox", name, row.ID, c.Name(), show(have), show(expected))
		}
	}
}

// same reports whether a stored value and a value of an entry have the same meaning.
func same(have, expected any) bool {
	if have == nil || expected == nil {
		return have == nil && expected == nil
	}
	switch h := have.(type) {
	case float64:
		t, ok := expected.(float64)
		return ok && (h == t || math.IsNaN(h) && math.IsNaN(t))
	case time.Time:
		t, ok := expected.(time.Time)
		return ok && h.Equal(t)
	case []byte:
		t, ok := expected.([]byte)
		return ok && bytes.Equal(h, t)
	case json.RawMessage:
		return sameJSON(h, rawJSON(expected))
	}
	return have == expected
}

// rawJSON returns the value of a JSON column in an entry as a document. Decode has
// decoded scalars to Go values.
func rawJSON(expected any) []byte {
	if raw, ok := expected.(json.RawMessage); ok {
		return raw
	}
	raw, _ := json.Marshal(expected)
	return raw
}

func sameJSON(a, b []byte) bool { return canonical(a) == canonical(b) }

// canonical returns a document with sorted keys and with numbers as fractions, so that
// 1e2 and 100 are equal.
func canonical(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "%q:", key)
			writeCanonical(b, v[key])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			writeCanonical(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case json.Number:
		b.WriteString(number(v))
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}

func number(n json.Number) string {
	if r, ok := new(big.Rat).SetString(n.String()); ok {
		return r.RatString()
	}
	return n.String()
}

func show(v any) string {
	text := fmt.Sprintf("%v", v)
	if raw, ok := v.(json.RawMessage); ok {
		text = string(raw)
	}
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return text
}
