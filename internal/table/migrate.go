package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// Ledger knows the tables that Migrate has made. Other tables are never altered.
type Ledger struct {
	// Made has the tables that were made, as Key names them.
	Made map[string]bool
	// Record returns the statement that records a table, before it is made.
	Record func(t *schema.Table) sqldb.Stmt
}

// Key returns the name of a table in a Ledger.
func Key(schemaName, tableName string) string { return schemaName + "." + tableName }

func (l Ledger) has(t *schema.Table) bool { return l.Made[Key(t.Schema().Name(), t.Name())] }

// Migrate creates the missing tables of the schemas and adds the missing columns and
// indexes of those that it has made. It never drops or changes anything: a column of another
// type is an error. A table that it has not made must be as described. If there is an error
// in a description, nothing is changed.
func (b Builder) Migrate(ctx context.Context, run sqldb.Runner, ledger Ledger, schemas ...*schema.Schema) error {
	var tables []*schema.Table
	for _, s := range schemas {
		if err := b.namespace(ctx, run, s); err != nil {
			return err
		}
		tables = append(tables, s.Tables()...)
	}
	tables = order(tables)
	plans := make([][]sqldb.Stmt, len(tables))
	for i, t := range tables {
		var err error
		if plans[i], err = b.look(ctx, run, ledger, t); err != nil {
			return err
		}
	}
	for i, t := range tables {
		for _, stmt := range plans[i] {
			if err := run.Run(ctx, stmt); err != nil {
				return fmt.Errorf("migrate table %s: %w", t.Name(), err)
			}
		}
	}
	return nil
}

// Missing reports whether Migrate would do anything for the schemas. It only reads.
func (b Builder) Missing(ctx context.Context, run sqldb.Runner, ledger Ledger, schemas ...*schema.Schema) (bool, error) {
	for _, s := range schemas {
		if exists, err := b.exists(ctx, run, s); err != nil || !exists {
			return true, err
		}
		for _, t := range s.Tables() {
			if plan, err := b.look(ctx, run, ledger, t); err != nil || len(plan) > 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// look returns the statements that change a table to its description.
func (b Builder) look(ctx context.Context, run sqldb.Runner, ledger Ledger, t *schema.Table) ([]sqldb.Stmt, error) {
	found, err := b.inspect(ctx, run, t)
	if err != nil {
		return nil, fmt.Errorf("inspect table %s: %w", t.Name(), err)
	}
	if found.exists() && (!ledger.has(t) || !recognized(found)) {
		return nil, b.refuse(t, found)
	}
	plan, err := b.plan(t, found)
	if err != nil {
		return nil, err
	}
	var stmts []sqldb.Stmt
	if !found.exists() && !ledger.has(t) {
		stmts = append(stmts, ledger.Record(t))
	}
	for _, text := range plan {
		stmts = append(stmts, sqldb.Exec(text))
	}
	return stmts, nil
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

// plan returns the statements that change the found table to the described one.
func (b Builder) plan(t *schema.Table, found catalog) ([]string, error) {
	var plan []string
	if !found.exists() {
		plan = append(plan, b.create(t))
	} else {
		added, err := b.planColumns(t, found)
		if err != nil {
			return nil, err
		}
		plan = append(plan, added...)
	}
	for _, index := range t.Indexes() {
		if !found.named(b.indexName(t, index)) {
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
		if want := b.columnType(c); !sameType(have.kind, want) {
			return nil, fault.Invalidf(field, "is %s in the database but described as %s", have.kind, want)
		}
	}
	return plan, nil
}
