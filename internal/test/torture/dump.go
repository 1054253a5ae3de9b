package torture

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/schema"
)

// Dump returns the rows of a schema's tables in a form that is equal for equal contents on
// all databases. It has one line per row under "table/id", with the version, the values,
// and references by external id. It reads one snapshot.
func Dump(ctx context.Context, db sqldb.DB, s *schema.Schema) (map[string]string, error) {
	tx, err := db.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	defer tx.Rollback()
	rows := map[*schema.Table][]*schema.Row{}
	external := map[*schema.Table]map[int64]string{}
	for _, t := range s.Tables() {
		if rows[t], err = readTable(ctx, tx, db.Dialect(), t); err != nil {
			return nil, fmt.Errorf("dump table %s: %w", t.Name(), err)
		}
		external[t] = map[int64]string{}
		for _, r := range rows[t] {
			external[t][r.Internal()] = r.ID
		}
	}
	lines := map[string]string{}
	for t, all := range rows {
		for _, r := range all {
			lines[t.Name()+"/"+r.ID] = line(r, external)
		}
	}
	return lines, nil
}

// readTable reads all rows of a table.
func readTable(ctx context.Context, run sqldb.Runner, d sqldb.Dialect, t *schema.Table) ([]*schema.Row, error) {
	var rows []*schema.Row
	find, err := table.Builder{Dialect: d}.Find(t, table.Query{}, func(error) {}, func(r *schema.Row) { rows = append(rows, r) })
	if err != nil {
		return nil, err
	}
	err = run.Run(ctx, find)
	return rows, err
}

func line(r *schema.Row, external map[*schema.Table]map[int64]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "v%d", r.Version)
	values := r.Values()
	for _, c := range r.Table().Columns() {
		v := values[c.Name()]
		if ref, ok := v.(schema.Reference); ok {
			v = external[c.Table()][ref.Internal()]
		}
		fmt.Fprintf(&b, " %s=%s", c.Name(), text(v))
	}
	return b.String()
}

// text formats a value so that differences in the databases' storage do not show.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []byte:
		return "x" + hex.EncodeToString(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.RawMessage:
		return canonicalJSON(v)
	}
	return fmt.Sprintf("%#v", v)
}

// canonicalJSON sorts keys, because PostgreSQL has its own order.
func canonicalJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(sorted)
}

// Diff returns the differences of two dumps, by rule C3.
func Diff(want, got map[string]string) Findings {
	var f Findings
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch line, ok := got[key]; {
		case !ok:
			f.add("C3", "%s is missing", key)
		case line != want[key]:
			f.add("C3", "%s is\n    %s, want\n    %s", key, line, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			f.add("C3", "%s should not exist", key)
		}
	}
	return f
}
