package store

import (
	"regexp"
	"strings"
)

// The statements in family.sql are templates for every kind of work whose queues have lanes.
// Their names start with {Kind}. The marks of a template are replaced by the names of the kind
// and by pieces: texts of the kind whose names have a dot, such as Hook.ClaimColumns. A piece
// that the kind does not have is empty.

// names are the names of a kind in statements.
type names struct{ kind, word, items string }

// laned are the kinds whose queues have lanes. A dialect supports a kind if it has the kind's
// pieces.
var laned = []names{{"Hook", "hook", "hook_items"}, {"Alarm", "alarm", "alarm_items"}}

var pieceMark = regexp.MustCompile(`\{piece (\w+)\}`)

// written returns the statements of a dialect. It expands the templates for every kind and
// omits the pieces.
func written(texts map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range texts {
		switch {
		case strings.Contains(name, "{Kind}"):
			for _, n := range laned {
				if _, exists := texts[n.kind+".ClaimColumns"]; exists {
					all[n.fill(name, texts)] = n.fill(text, texts)
				}
			}
		case !strings.Contains(name, "."):
			for _, n := range laned {
				if strings.HasPrefix(name, n.kind) {
					text = n.fill(text, texts)
				}
			}
			all[name] = text
		}
	}
	for name, text := range all {
		all[name] = withFloors(text, texts)
	}
	return all
}

// fill replaces the marks of a text by the names and pieces of the kind. A piece that ends with
// a comma starts a list.
func (n names) fill(text string, pieces map[string]string) string {
	text = pieceMark.ReplaceAllStringFunc(text, func(mark string) string {
		piece := pieces[n.kind+"."+pieceMark.FindStringSubmatch(mark)[1]]
		if strings.HasSuffix(piece, ",") {
			piece += " "
		}
		return piece
	})
	return strings.NewReplacer("{Kind}", n.kind, "{word}", n.word, "{items}", n.items).Replace(text)
}
