package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// Migrate creates the missing tables of the schemas and adds the missing columns and
// indexes of the existing ones. It never drops or changes anything: a column of another
// type is an error.
func (b Builder) Migrate(ctx context.Context, run sqldb.Runner, schemas ...*schema.Schema) error {
	var tables []*schema.Table
	for _, s := range schemas {
		if err := b.namespace(ctx, run, s); err != nil {
			return err
		}
		tables = append(tables, s.Tables()...)
	}
	for _, t := range order(tables) {
		plan, err := b.look(ctx, run, t)
		if err != nil {
			return err
		}
		for _, text := range plan {
			if err := run.Run(ctx, sqldb.Exec(text)); err != nil {
				return fmt.Errorf("migrate table %s: %w", t.Name(), err)
			}
		}
	}
	return nil
}

// Missing reports whether Migrate would do anything for the schemas. It only reads.
func (b Builder) Missing(ctx context.Context, run sqldb.Runner, schemas ...*schema.Schema) (bool, error) {
	for _, s := range schemas {
		if exists, err := b.exists(ctx, run, s); err != nil || !exists {
			return true, err
		}
		for _, t := range s.Tables() {
			if plan, err := b.look(ctx, run, t); err != nil || len(plan) > 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// look returns the statements that change a table to its description.
func (b Builder) look(ctx context.Context, run sqldb.Runner, t *schema.Table) ([]string, error) {
	found, err := b.inspect(ctx, run, t)
	if err != nil {
		return nil, fmt.Errorf("inspect table %s: %w", t.Name(), err)
	}
	return b.plan(t, found)
}

// exists reports whether the database has the namespace of a schema.
func (b Builder) exists(ctx context.Context, run sqldb.Runner, s *schema.Schema) (found bool, err error) {
	if !b.Dialect.HasSchemas() {
		return true, nil
	}
	err = run.Run(ctx, sqldb.Stmt{
		SQL: "select to_regnamespace(quote_ident($1)) is not null", Args: []any{s.Name()},
		Row: func(scan sqldb.Scan) error { return scan(&found) },
	})
	return found, err
}

func (b Builder) namespace(ctx context.Context, run sqldb.Runner, s *schema.Schema) error {
	if !b.Dialect.HasSchemas() {
		return nil
	}
	err := run.Run(ctx, sqldb.Exec("create schema if not exists "+b.q(s.Name())))
	if err != nil {
		return fmt.Errorf("create schema %s: %w", s.Name(), err)
	}
	return nil
}

// order sorts tables after the tables to which they refer. Tables that refer to each other
// in a circle keep the described order; MySQL and PostgreSQL will reject them.
func order(tables []*schema.Table) []*schema.Table {
	var sorted []*schema.Table
	state := map[*schema.Table]bool{} // present: visited
	var visit func(t *schema.Table)
	visit = func(t *schema.Table) {
		if state[t] || !slices.Contains(tables, t) {
			return
		}
		state[t] = true
		for _, c := range t.Columns() {
			if c.Table() != nil {
				visit(c.Table())
			}
		}
		sorted = append(sorted, t)
	}
	for _, t := range tables {
		visit(t)
	}
	return sorted
}

// catalog describes an existing table.
type catalog struct {
	columns map[string]string // type by name
	indexes map[string]bool
}

// plan returns the statements that change the found table to the described one.
func (b Builder) plan(t *schema.Table, found catalog) ([]string, error) {
	var plan []string
	if len(found.columns) == 0 {
		plan = append(plan, b.create(t))
	} else {
		added, err := b.planColumns(t, found)
		if err != nil {
			return nil, err
		}
		plan = append(plan, added...)
	}
	for _, index := range t.Indexes() {
		if !found.indexes[b.indexName(t, index)] {
			plan = append(plan, b.index(t, index))
		}
	}
	return plan, nil
}

func (b Builder) planColumns(t *schema.Table, found catalog) ([]string, error) {
	var plan []string
	for _, c := range t.Columns() {
		field := t.Name() + "." + c.Name()
		have, ok := found.columns[c.Name()]
		if !ok {
			if _, filled := c.StaticDefault(); !filled && !c.IsOptional() {
				return nil, fault.Invalidf(field, "must be Optional or have a Default: it is new, and existing rows have no value")
			}
			plan = append(plan, b.addColumn(t, c)...)
			continue
		}
		if want := b.columnType(c); !sameType(have, want) {
			return nil, fault.Invalidf(field, "is %s in the database but described as %s", have, want)
		}
	}
	return plan, nil
}

// sameType compares types as the catalogs spell them. The length limit of a text is checked
// by package edge. On MySQL it is also part of the type, so there a longer limit is another
// type.
func sameType(have, want string) bool {
	return normal(have) == normal(want)
}

func normal(name string) string {
	name = strings.ToLower(name)
	if name == "timestamp with time zone" {
		return "timestamptz"
	}
	if strings.HasPrefix(name, "bigint(") { // MariaDB shows a display width
		return "bigint"
	}
	return name
}

func (b Builder) inspect(ctx context.Context, run sqldb.Runner, t *schema.Table) (catalog, error) {
	found := catalog{columns: map[string]string{}, indexes: map[string]bool{}}
	args := []any{t.Schema().Name(), t.Name()}
	columns := sqldb.Stmt{SQL: b.grammar().columns, Args: args, Row: func(scan sqldb.Scan) error {
		var name, kind string
		err := scan(&name, &kind)
		found.columns[name] = kind
		return err
	}}
	indexes := sqldb.Stmt{SQL: b.grammar().indexes, Args: args, Row: func(scan sqldb.Scan) error {
		var name string
		err := scan(&name)
		found.indexes[name] = true
		return err
	}}
	err := run.Run(ctx, columns, indexes)
	return found, err
}
