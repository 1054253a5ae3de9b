package store

import (
	"maps"
	"regexp"
	"strings"
)

// Processes may have different keys while keys are being replaced. A claim must then skip the
// work that this process cannot decrypt, and leave it to another process.
//
// The condition must examine the values, so claims omit it until a process has met a key that
// it does not have. From then on, its claims and the statements that find the next due time
// include the condition. A statement marks the place of the condition with {openable Name of}:
// Name is one of the conditions, of is the column or the row that it applies to.

var (
	openableMark = regexp.MustCompile(`\{openable (\w+) ([\w.]+)\}`)
	foreignMark  = regexp.MustCompile(`\{foreign ([\w.]+)\}`)
)

// openableNames are the names of the conditions in openable.sql.
var openableNames = map[string]string{"Row": "OpenableRow", "Instance": "OpenableInstance", "Hook": "OpenableHook", "Alarm": "OpenableAlarm", "Actor": "OpenableActor"}

// statements are the statements of a dialect by name.
type statements struct {
	// plain are the statements without the conditions.
	plain map[string]string
	// marked are the statements with marks for conditions, including the marks.
	marked map[string]string
}

func (s *statements) add(name, text string) {
	s.plain[name] = openableMark.ReplaceAllString(text, "")
	if openableMark.MatchString(text) {
		s.marked[name] = text
	}
}

// openable returns all statements, with the conditions for a process that has these keys. Key
// ids contain no quotes.
func (s *statements) openable(ids []string) map[string]string {
	foreign := strings.ReplaceAll(s.plain["Foreign"], "{ids}", "'"+strings.Join(append([]string{""}, ids...), "', '")+"'")
	all := maps.Clone(s.plain)
	for name, text := range s.marked {
		all[name] = openableMark.ReplaceAllStringFunc(text, func(mark string) string {
			parts := openableMark.FindStringSubmatch(mark)
			condition := strings.ReplaceAll(s.plain[openableNames[parts[1]]], "{of}", parts[2])
			return " and " + foreignMark.ReplaceAllStringFunc(condition, func(mark string) string {
				return strings.ReplaceAll(foreign, "{value}", foreignMark.FindStringSubmatch(mark)[1])
			})
		})
	}
	return all
}

// SkipForeign makes claims skip the work that is encrypted with a key that this
// process does not have, from now on.
func (s *Store) SkipForeign() {
	if s.skipping.Load() == nil {
		texts := s.statements.openable(s.keys.IDs())
		s.skipping.Store(&texts)
	}
}

// SkipsForeign reports whether claims skip the work that is encrypted with a key that
// this process does not have.
func (s *Store) SkipsForeign() bool { return s.skipping.Load() != nil }

// text returns the named statement.
func (s *Store) text(name string) string {
	if texts := s.skipping.Load(); texts != nil {
		return (*texts)[name]
	}
	return s.statements.plain[name]
}
