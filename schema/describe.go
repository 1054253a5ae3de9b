package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// description is the form in which a schema is recorded in the database. With it, a tool
// that was not compiled with the schema (the command line) can read the tables. Defaults
// that are functions are not recorded; only code that creates rows needs them.
type description struct {
	Name   string             `json:"name"`
	Tables []tableDescription `json:"tables"`
}

type tableDescription struct {
	Name    string              `json:"name"`
	Columns []columnDescription `json:"columns"`
	Indexes []Index             `json:"indexes,omitempty"`
}

type columnDescription struct {
	Name     string          `json:"name"`
	Type     Type            `json:"type"`
	Max      int             `json:"max,omitempty"`
	Optional bool            `json:"optional,omitempty"`
	Refs     string          `json:"refs,omitempty"` // schema.table
	Default  json.RawMessage `json:"default,omitempty"`
}

// MarshalJSON returns the recorded form of the schema.
func (s *Schema) MarshalJSON() ([]byte, error) {
	d := description{Name: s.name}
	for _, t := range s.tables {
		table := tableDescription{Name: t.name, Indexes: t.indexes}
		for _, c := range t.columns {
			table.Columns = append(table.Columns, c.describe())
		}
		d.Tables = append(d.Tables, table)
	}
	return json.Marshal(d)
}

func (c Column) describe() columnDescription {
	d := columnDescription{Name: c.name, Type: c.typ, Max: c.max, Optional: c.optional}
	if c.refs != nil {
		d.Refs = c.refs.schema.name + "." + c.refs.name
	}
	if v, ok := c.StaticDefault(); ok {
		d.Default, _ = json.Marshal(v) // a default that JSON cannot hold (NaN) is not recorded
	}
	return d
}

// Parse parses the recorded forms of several schemas, which may refer to each other.
func Parse(recorded ...[]byte) ([]*Schema, error) {
	var schemas []*Schema
	var all []description
	for _, raw := range recorded {
		var d description
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, fmt.Errorf("parse schema description: %w", err)
		}
		all = append(all, d)
		schemas = append(schemas, New(d.Name, d.tables()...))
	}
	for i, d := range all {
		if err := link(schemas[i], d, schemas); err != nil {
			return nil, err
		}
	}
	return schemas, nil
}

func (d description) tables() []*Table {
	var tables []*Table
	for _, t := range d.Tables {
		table := &Table{name: t.Name, indexes: t.Indexes}
		for _, c := range t.Columns {
			table.columns = append(table.columns, c.column())
		}
		tables = append(tables, table)
	}
	return tables
}

func (d columnDescription) column() Column {
	c := Column{name: d.Name, typ: d.Type, max: d.Max, optional: d.Optional}
	if d.Default != nil {
		c.value, c.hasDefault = c.parseDefault(d.Default), true
	}
	return c
}

// parseDefault decodes a default into the Go type of the column.
func (c Column) parseDefault(raw json.RawMessage) any {
	switch c.typ {
	case TypeJSON:
		return raw
	case TypeInt:
		return json.Number(strings.TrimSpace(string(raw)))
	case TypeTime:
		return decode[time.Time](raw)
	case TypeBytes:
		return decode[[]byte](raw)
	case TypeString, TypeText, TypeFloat, TypeDecimal, TypeBool, TypeRef:
	}
	return decode[any](raw)
}

func decode[T any](raw json.RawMessage) any {
	var v T
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// link sets the tables of the Ref columns.
func link(s *Schema, d description, all []*Schema) error {
	for i, t := range d.Tables {
		for j, c := range t.Columns {
			if c.Refs == "" {
				continue
			}
			target := lookup(all, c.Refs)
			if target == nil {
				return fmt.Errorf("parse schema %s: %s.%s refers to table %s, which does not exist", d.Name, t.Name, c.Name, c.Refs)
			}
			s.tables[i].columns[j].refs = target
		}
	}
	return nil
}

func lookup(all []*Schema, name string) *Table {
	schemaName, table, _ := strings.Cut(name, ".")
	for _, s := range all {
		if s.name == schemaName {
			return s.Table(table)
		}
	}
	return nil
}
