package store

import "strings"

// conditions assembles the WHERE clause of a list from the filters that are
// set. Column names are ours; values are always arguments.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(text string, args ...any) {
	c.parts = append(c.parts, text)
	c.args = append(c.args, args...)
}

// equal adds a condition unless the value is empty.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

// in adds a condition unless there are no values.
func (c *conditions) in(column string, values []any) {
	if len(values) > 0 {
		c.add(column+" in ("+placeholders(len(values))+")", values...)
	}
}

func (c *conditions) sql() string {
	if len(c.parts) == 0 {
		return ""
	}
	return "where " + strings.Join(c.parts, " and ") + "\n"
}

// placeholders returns n question marks.
func placeholders(n int) string { return placeholdersOf("?", n) }

// placeholdersOf returns n placeholders that are written in one way.
func placeholdersOf(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ")
}
