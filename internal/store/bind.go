package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// MySQL has neither numbered placeholders nor joins with a set of subqueries. Statements use
// both, and are converted to plain statements here:
//
//   - ?2 is the second value, at any position and any number of times. It is replaced by ?,
//     and the value is repeated for each occurrence.
//   - The lines between {each ?8} and {end} are repeated for every row of the set ?8, joined
//     with union all. In these lines ?8 is the first column of the row.
//
// A statement numbers all of its values or none. No text literal in it contains a ?.

// bind returns a statement with its values.
func (s *Store) bind(text string, args []any) sqldb.Stmt {
	return s.bound(text, args, s.expand(args))
}

// bindAll returns the statements of a text that contains several statements. All of them get
// the same values.
func (s *Store) bindAll(text string, args []any) []sqldb.Stmt {
	values := s.expand(args)
	var stmts []sqldb.Stmt
	for _, part := range strings.Split(text, "\n;\n") {
		stmts = append(stmts, s.bound(part, args, values))
	}
	return stmts
}

// bound returns a statement with expanded values. sets are the values before the expansion.
func (s *Store) bound(text string, sets, values []any) sqldb.Stmt {
	if !s.dialect.NumbersPlaceholders() {
		text, values = repeat(text, sets, values)
		text, values = unnumbered(text, values)
	}
	return sqldb.Stmt{SQL: text, Args: values}
}

// repeat writes the lines between {each ?N} and {end} for every row of a set. It returns the
// values, followed by the values of the rows. For a set without rows, the lines are written
// once, with null.
func repeat(text string, sets, values []any) (string, []any) {
	before, rest, found := strings.Cut(text, "{each ?")
	if !found {
		return text, values
	}
	number, rest, _ := strings.Cut(rest, "}\n")
	block, after, _ := strings.Cut(rest, "\n{end}")
	of, _ := strconv.Atoi(number)
	values = slices.Clone(values)
	var blocks []string
	for _, value := range firstColumn(sets, of) {
		values = append(values, value)
		row := len(values)
		blocks = append(blocks, numbers(block, func(n int) string {
			if n == of {
				n = row
			}
			return "?" + strconv.Itoa(n)
		}))
	}
	return before + strings.Join(blocks, "\nunion all\n") + after, values
}

// firstColumn returns the first column of a set among the values. It returns a single null if
// there is no such set or the set is empty.
func firstColumn(args []any, number int) []any {
	if number < 1 || number > len(args) {
		return []any{nil}
	}
	set, _ := args[number-1].(tuples)
	if len(set) == 0 {
		return []any{nil}
	}
	var values []any
	switch column := set[0].(type) {
	case []string:
		values = anys(column)
	case []int64:
		values = anys(column)
	}
	if len(values) == 0 {
		return []any{nil}
	}
	return values
}

func anys[T any](column []T) []any {
	values := make([]any, len(column))
	for i, value := range column {
		values[i] = value
	}
	return values
}

// unnumbered replaces numbered placeholders by ? and returns the values in order of use. A text
// that has only ? is unchanged and keeps all values. A text without placeholders gets no
// values.
func unnumbered(text string, args []any) (string, []any) {
	var ordered []any
	plain := numbers(text, func(n int) string {
		var value any // null for a number without a value: the server then rejects an invalid null
		if n >= 1 && n <= len(args) {
			value = args[n-1]
		}
		ordered = append(ordered, value)
		return "?"
	})
	if ordered == nil && strings.Contains(text, "?") {
		return text, args
	}
	return plain, ordered
}

// numbers replaces every numbered placeholder of a text.
func numbers(text string, replace func(n int) string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '?')
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := at + 1
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		b.WriteString(text[:at])
		if n, err := strconv.Atoi(text[at+1 : end]); err == nil {
			b.WriteString(replace(n))
		} else {
			b.WriteString(text[at:end])
		}
		text = text[end:]
	}
}
