package store

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"time"
)

// tuples is a list of rows as an argument, column by column: slices of equal length. PostgreSQL
// receives the columns as arrays, SQLite the rows as JSON.
type tuples []any

// expand converts the sets among the arguments to the form of the dialect.
func (s *Store) expand(args []any) []any {
	expanded := make([]any, 0, len(args))
	for _, arg := range args {
		columns, ok := arg.(tuples)
		switch {
		case !ok:
			expanded = append(expanded, arg)
		case s.dialect.HasArrays():
			expanded = append(expanded, columns.arrays()...)
		default:
			expanded = append(expanded, columns.json())
		}
	}
	return expanded
}

// arrays returns the columns in the form for PostgreSQL. A column of only nulls is null itself:
// unnest extends it to the length of the first column.
func (c tuples) arrays() []any {
	arrays := make([]any, len(c))
	for i, column := range c {
		switch column := column.(type) {
		case []string:
			arrays[i] = texts(column)
		case []*string:
			if i > 0 && allNil(column) {
				continue
			}
			arrays[i] = nullTexts(column)
		default:
			arrays[i] = column
		}
	}
	return arrays
}

func allNil[T any](column []*T) bool {
	return !slices.ContainsFunc(column, func(v *T) bool { return v != nil })
}

// json returns the rows as an array of arrays. Times are microseconds, as in
// every column of SQLite.
func (c tuples) json() string {
	columns := make([]reflect.Value, len(c))
	for i, column := range c {
		columns[i] = reflect.ValueOf(column)
	}
	rows := make([][]any, columns[0].Len())
	for r := range rows {
		rows[r] = make([]any, len(columns))
		for i, column := range columns {
			rows[r][i] = cell(column.Index(r).Interface())
		}
	}
	text, _ := json.Marshal(rows) // strings, numbers and null only
	return string(text)
}

func cell(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UnixMicro()
	case *time.Time:
		if v == nil {
			return nil
		}
		return v.UnixMicro()
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return v
}

// one returns a set of one column.
func one[T any](column []T) tuples { return tuples{column} }

// column returns one value of each row.
func column[R, T any](rows []R, pick func(R) T) []T {
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = pick(row)
	}
	return values
}

// micros converts a duration to microseconds. nil stays null.
func micros(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	us := d.Microseconds()
	return &us
}

// names returns names as an argument: an array, or JSON if the database has no arrays.
func (s *Store) names(names []string) any {
	if s.dialect.HasArrays() {
		return names
	}
	encoded, _ := json.Marshal(names) // cannot fail for strings
	return string(encoded)
}

// maxMicroseconds is the longest time that a time.Duration can hold.
const maxMicroseconds = math.MaxInt64 / int64(time.Microsecond)
