package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// sealedPage is the number of encrypted values that are read at a time.
	sealedPage = 500
	// maxSealed is the number of values of each column that are decrypted.
	maxSealed = 10_000
)

// jsonTypes are the types of JSON Schema by the words of the databases.
var jsonTypes = map[string]string{
	"object": "object", "array": "array", "null": "null", "true": "boolean", "false": "boolean", "boolean": "boolean",
	"string": "string", "text": "string", "number": "number", "integer": "number", "real": "number", "double": "number", "decimal": "number",
}

// states finds live instances whose state is not of the type that their definition declares.
func (x *examination) states(ctx context.Context) error {
	types := map[store.Definition][]string{}
	list := x.rt.Store.RecordedDefinitions(func(d store.RecordedDefinition) { types[d.Definition] = typesOf(d.Schema) })
	if err := sqldb.Each(ctx, x.rt.DB, list.Row, list.SQL, list.Args...); err != nil {
		return err
	}
	var findings []Finding
	group := x.rt.Store.StateTypes(func(s store.StateType) {
		found, known := jsonTypes[s.Type]
		want := types[s.Definition]
		if s.Key != "" || known && (len(want) == 0 || slices.Contains(want, found)) {
			return
		}
		if !known {
			found = "no JSON"
		}
		detail := fmt.Sprintf("the state of %d instances of %s is %s", s.Count, s.Definition, found)
		if len(want) > 0 {
			detail += fmt.Sprintf(", the definition declares %v", want)
		}
		findings = append(findings, Finding{ID: s.Example, Detail: detail})
	})
	if err := sqldb.Each(ctx, x.rt.DB, group.Row, group.SQL, group.Args...); err != nil {
		return err
	}
	x.add("fsm_state", "", findings...)
	return nil
}

// typesOf returns the types that a JSON Schema allows at its top. It returns nil if the schema
// does not limit them.
func typesOf(schema *string) []string {
	var s struct {
		Type json.RawMessage `json:"type"`
	}
	if schema == nil || json.Unmarshal([]byte(*schema), &s) != nil || s.Type == nil {
		return nil
	}
	var one string
	var some []string
	if json.Unmarshal(s.Type, &one) == nil {
		some = []string{one}
	} else if json.Unmarshal(s.Type, &some) != nil {
		return nil
	}
	for i, t := range some {
		if t == "integer" { // the databases do not tell a whole number from another
			some[i] = "number"
		}
	}
	return some
}

// keys finds values that cannot be decrypted with the keys of this process.
func (x *examination) keys(ctx context.Context) error {
	var findings []Finding
	for _, column := range x.rt.Store.SealedColumns() {
		some, err := x.sealed(ctx, column)
		if err != nil {
			return fmt.Errorf("read %s: %w", column.Name, err)
		}
		findings = append(findings, some...)
	}
	x.add("keys", "", findings...)
	return nil
}

// sealed returns a finding for each key of a column, with the first value that cannot be
// decrypted.
func (x *examination) sealed(ctx context.Context, column store.SealedColumn) ([]Finding, error) {
	var findings []Finding
	seen := map[string]bool{}
	after := ""
	for range maxSealed / sealedPage {
		n := 0
		page := x.rt.Store.SealedRows(column, after, sealedPage, func(r store.SealedRow) {
			n, after = n+1, r.Key
			if err := x.rt.Store.OpenSealed(r); err != nil && !seen[keyOf(err)] {
				seen[keyOf(err)] = true
				findings = append(findings, Finding{ID: r.Key, Detail: err.Error()})
			}
		})
		if err := sqldb.Each(ctx, x.rt.DB, page.Row, page.SQL, page.Args...); err != nil {
			return nil, err
		}
		if n < sealedPage {
			break
		}
	}
	return findings, nil
}
