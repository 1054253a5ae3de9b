package store

import (
	"slices"
	"strings"
)

// conditions builds the WHERE clause of a list from the filters that are set. Column names are
// constants; values are always arguments.
type conditions struct {
	parts []string
	args  []any
	// flags is true if the indexes of the database have no conditions.
	flags bool
}

// conditions returns an empty set of conditions.
func (s *Store) conditions() conditions {
	return conditions{flags: !s.dialect.HasPartialIndexes()}
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

// partial is an index of the rows with certain statuses. where is its condition. flag is the
// condition on MySQL, whose indexes have no conditions: there the index starts with a flag
// column.
type partial struct {
	statuses    []string
	where, flag string
}

// within returns a partial index that contains all rows with these statuses.
func within(statuses []string, indexes []partial) (partial, bool) {
	for _, p := range indexes {
		if len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s string) bool { return !slices.Contains(p.statuses, s) }) {
			return p, true
		}
	}
	return partial{}, false
}

func (c *conditions) sql() string {
	if len(c.parts) == 0 {
		return ""
	}
	return "where " + strings.Join(c.parts, " and ") + "\n"
}

// placeholders returns n question marks.
func placeholders(n int) string { return placeholdersOf("?", n) }

// placeholdersOf returns n copies of a placeholder.
func placeholdersOf(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ")
}
