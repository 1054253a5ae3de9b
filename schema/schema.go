// Package schema describes the tables of an application.
//
// Every row has an external id, an internal id and a version. The external id is a
// string, which the application and the outbox use. The internal id is a number, which
// references store. The version counts the changes of the row:
//
//	var Users = schema.NewTable("users",
//		schema.String("name"),
//		schema.String("email").Unique(),
//	)
//	var Posts = schema.NewTable("posts",
//		schema.Ref("author", Users),
//		schema.Text("body"),
//		schema.Time("created").DefaultNow(),
//	).Index("author", "created")
//	var Blog = schema.New("blog", Users, Posts)
//
// The description is only data. perdure.Open validates it and creates or extends the
// tables.
package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Schema is a named group of tables. On PostgreSQL its name is the database schema of the
// tables. On other databases it is the prefix of their names.
type Schema struct {
	name   string
	tables []*Table
}

// New describes a schema. Validate reports mistakes in the description; perdure.Open
// calls it.
func New(name string, tables ...*Table) *Schema {
	s := &Schema{name: name, tables: tables}
	for _, t := range tables {
		if t != nil {
			t.schema = s
		}
	}
	return s
}

// Name returns the schema's name.
func (s *Schema) Name() string { return s.name }

// Tables returns the tables in the order in which they were passed to New.
func (s *Schema) Tables() []*Table { return slices.Clone(s.tables) }

// Table returns the table with that name, or nil.
func (s *Schema) Table(name string) *Table {
	for _, t := range s.tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// reserved are the names that Perdure and the databases use for their own tables. Names
// with a trailing underscore are prefixes: on some databases the schema is a prefix of
// the table name.
var reserved = []string{
	"perdure", "perdure_", "queues", "queues_", "internal", "internal_", "comms", "comms_",
	"information_schema", "mysql", "sys", "sqlite", "sqlite_", "pg_",
}

func isReserved(name string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		return name == r || strings.HasSuffix(r, "_") && strings.HasPrefix(name, r)
	})
}

// Validate returns the first mistake in the description as a *fault.Invalid.
func (s *Schema) Validate() error {
	if s == nil {
		return fault.Invalidf("schema", "must not be nil")
	}
	if err := edge.Identifier("schema", s.name); err != nil {
		return err
	}
	if isReserved(strings.ToLower(s.name)) {
		return fault.Invalidf("schema "+s.name, "must not have a reserved name")
	}
	if len(s.tables) == 0 {
		return fault.Invalidf("schema "+s.name, "must have at least one table")
	}
	tables, indexes := names{}, names{}
	for _, t := range s.tables {
		if t == nil {
			return fault.Invalidf("schema "+s.name, "must not have a nil table")
		}
		if !tables.add(t.name) {
			return fault.Invalidf("schema "+s.name, "must not have table %q twice", t.name)
		}
		if err := t.validate(s, indexes); err != nil {
			return err
		}
	}
	return nil
}

// names are the names in use, without regard to case. Most databases do not distinguish
// upper and lower case in names.
type names map[string]bool

// add adds a name and reports whether it was not in use.
func (n names) add(name string) bool {
	name = strings.ToLower(name)
	taken := n[name]
	n[name] = true
	return !taken
}

// Table is one table of a schema.
type Table struct {
	schema  *Schema
	name    string
	columns []Column
	indexes []Index
}

// Index is an index over columns of a table.
type Index struct {
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique,omitempty"`
}

// NewTable describes a table. Perdure adds the columns id, _id and _version
// automatically.
func NewTable(name string, columns ...Column) *Table {
	t := &Table{name: name, columns: columns}
	for _, c := range columns {
		if c.unique {
			t.indexes = append(t.indexes, Index{Columns: []string{c.name}, Unique: true})
		}
	}
	return t
}

// Index adds an index over the columns and returns the table.
func (t *Table) Index(columns ...string) *Table {
	t.indexes = append(t.indexes, Index{Columns: columns})
	return t
}

// Unique adds a unique index over the columns and returns the table. Rows in which one of
// the columns is null are never duplicates.
func (t *Table) Unique(columns ...string) *Table {
	t.indexes = append(t.indexes, Index{Columns: columns, Unique: true})
	return t
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Schema returns the schema that the table belongs to, or nil.
func (t *Table) Schema() *Schema { return t.schema }

// Columns returns the described columns.
func (t *Table) Columns() []Column { return slices.Clone(t.columns) }

// Indexes returns the described indexes.
func (t *Table) Indexes() []Index { return slices.Clone(t.indexes) }

// Column returns the column with that name, and whether it exists.
func (t *Table) Column(name string) (Column, bool) {
	for _, c := range t.columns {
		if c.name == name {
			return c, true
		}
	}
	return Column{}, false
}

// systemColumns are the columns that PostgreSQL adds to every table.
var systemColumns = []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}

func (t *Table) validate(s *Schema, indexes names) error {
	if err := edge.Identifier("table", t.name); err != nil {
		return err
	}
	if t.schema != s {
		return fault.Invalidf("table "+t.name, "already belongs to schema %q", t.schema.name)
	}
	columns := names{"id": true}
	for _, name := range systemColumns {
		columns.add(name)
	}
	for _, c := range t.columns {
		if !columns.add(c.name) {
			return fault.Invalidf(t.name+"."+c.name, "must not be described twice or have a reserved name")
		}
		if err := c.validate(t); err != nil {
			return err
		}
	}
	return t.validateIndexes(indexes)
}

func (t *Table) validateIndexes(taken names) error {
	for _, index := range t.indexes {
		if len(index.Columns) == 0 {
			return fault.Invalidf("table "+t.name, "must not have an index without columns")
		}
		for _, name := range index.Columns {
			c, ok := t.Column(name)
			if !ok && name != "id" {
				return fault.Invalidf(t.name+"."+name, "is indexed but is not a column of the table")
			}
			if c.typ == TypeText || c.typ == TypeJSON || c.typ == TypeBytes {
				return fault.Invalidf(t.name+"."+name, "must be a column that can be indexed, got a %s column", c.typ)
			}
		}
		// The name of an index in the database consists of these names.
		if !taken.add(fmt.Sprint(t.name, "_", strings.Join(index.Columns, "_"), index.Unique)) {
			return fault.Invalidf("table "+t.name, "must not have an index on %s twice, or with the name of another index", strings.Join(index.Columns, ", "))
		}
	}
	return nil
}
