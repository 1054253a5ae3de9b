package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// schema compares the tables, indexes, constraints, functions and triggers of the database with
// those that the migrations create.
func (x *examination) schema(ctx context.Context) error {
	want, err := x.rt.Store.Catalog()
	if err != nil {
		return err
	}
	var found []store.Object
	objects := x.rt.Store.Objects(func(o store.Object) { found = append(found, o) })
	if err := sqldb.Each(ctx, x.rt.DB, objects.Row, objects.SQL, objects.Args...); err != nil {
		return err
	}
	var findings []Finding
	for o, other := range store.Missing(want, found) {
		detail := "is missing"
		if other != "" {
			detail = fmt.Sprintf("is %q instead of %q", other, o.Form)
		}
		findings = append(findings, Finding{ID: o.Name, Detail: detail})
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.ID, b.ID) })
	x.add("schema", fmt.Sprintf("%d objects", len(want)), findings...)
	return nil
}
