package statechart

import (
	"strconv"
	"strings"
)

// SVG draws a machine: states as nested boxes, transitions as arrows. States whose ids are in
// active are highlighted. The same machine and states always produce the same bytes.
func SVG(m *Machine, active []string) []byte {
	return layOut(m).render(active)
}

// layOut computes the positions of all states, arrows and labels. Its time is bounded by the
// size of the machine, except for the labels, whose time is bounded by maxLooks.
func layOut(m *Machine) *drawing {
	d := &drawing{m: m, boxes: make([]box, len(m.nodes)), arrows: arrowsOf(m), inside: map[*node][]*arrow{}}
	for _, a := range d.arrows {
		if n := a.home(); n != nil {
			d.inside[n] = append(d.inside[n], a)
		}
	}
	d.size(m.root)
	d.place(m.root, margin, margin)
	d.route()
	return d
}

// Measures of a drawing, in pixels.
const (
	margin    = 16.0
	pad       = 18.0 // inside a box, around its states
	lineHigh  = 16.0
	titleHigh = 26.0
	minWide   = 70.0
	rowGap    = 34.0
	dotWide   = 34.0 // left of the first column, for the initial dot
	dashGap   = 12.0
	charWide  = 6.6
	titleChar = 7.6
)

// A drawing is the layout of a machine.
type drawing struct {
	m      *Machine
	boxes  []box // by the order of the states
	arrows []*arrow
	inside map[*node][]*arrow // the arrows between the states of a state
	labels []rect
	limit  rect // of all that is drawn
	looks  int  // number of comparisons of label positions with other shapes
}

type rect struct{ x, y, w, h float64 }

// A box is a state in the drawing.
type box struct {
	rect
	lines       []string // below the title
	column, row int      // in the state around it
	// columns of the states inside, and their widths with the gaps after them
	columns [][]*node
	widths  []float64
	gaps    []float64
	above   float64 // room for arrows that pass over
	below   float64 // and under
}

// An arrow joins all transitions from one state to another.
type arrow struct {
	from, to *node
	labels   []string
	path     []point // a cubic curve, or several
	label    rect
}

type point struct{ x, y float64 }

// arrowsOf collects the transitions that lead to another state.
func arrowsOf(m *Machine) []*arrow {
	var all []*arrow
	byEnds := map[[2]*node]*arrow{}
	labelled := map[*arrow]map[string]bool{}
	add := func(from, to *node, label string) {
		a, ok := byEnds[[2]*node{from, to}]
		if !ok {
			a = &arrow{from: from, to: to}
			byEnds[[2]*node{from, to}] = a
			labelled[a] = map[string]bool{}
			all = append(all, a)
		}
		if label != "" && !labelled[a][label] {
			labelled[a][label] = true
			a.labels = append(a.labels, label)
		}
	}
	for _, n := range m.nodes {
		for _, t := range n.outgoing() {
			for _, to := range t.targets {
				if to != n || t.reenter {
					add(n, to, t.text)
				}
			}
		}
		if n.kind == history && !n.viaInitial && n.parent.kind != parallel {
			for _, to := range n.defaults {
				add(n, to, "")
			}
		}
	}
	return all
}

// A labelled transition is a transition with its label text.
type labelled struct {
	*transition
	text string
}

// outgoing returns a state's transitions with their label texts.
func (n *node) outgoing() []labelled {
	var all []labelled
	for _, d := range n.descriptors {
		for _, t := range d.transitions {
			all = append(all, labelled{t, t.text(n.eventText(d))})
		}
	}
	for _, t := range n.always {
		all = append(all, labelled{t, t.text("always")})
	}
	return all
}

// eventText shortens the internal event names of the interpreter.
func (n *node) eventText(d *descriptor) string {
	if !d.internal {
		return d.name
	}
	if rest, ok := strings.CutPrefix(d.name, afterPrefix); ok {
		return "after " + delayText(strings.TrimSuffix(rest, "."+n.id))
	}
	for _, e := range []struct{ prefix, text string }{
		{doneActorPrefix, "done: "}, {errorActorPrefix, "error: "}, {snapshotPrefix, "snapshot: "},
	} {
		if id, ok := strings.CutPrefix(d.name, e.prefix); ok {
			return e.text + n.invokeText(id)
		}
	}
	if strings.HasPrefix(d.name, doneStatePrefix) {
		return "done"
	}
	return strings.TrimPrefix(d.name, reserved)
}

// invokeText returns the name of an invoked actor: its id, or its src if the id is generated.
func (n *node) invokeText(id string) string {
	for _, inv := range n.invokes {
		if inv.id == id && strings.HasSuffix(id, "."+n.id) {
			return inv.src
		}
	}
	return id
}

// delayText formats milliseconds for people.
func delayText(name string) string {
	ms, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return name
	}
	for _, unit := range []struct {
		ms   int64
		text string
	}{{86_400_000, " d"}, {3_600_000, " h"}, {60_000, " min"}, {1000, " s"}} {
		if ms >= unit.ms && ms%unit.ms == 0 {
			return strconv.FormatInt(ms/unit.ms, 10) + unit.text
		}
	}
	return name + " ms"
}

// text returns the label of a transition: event, guard and actions.
func (t *transition) text(event string) string {
	if t.guard != nil {
		event += " [" + guardText(t.guard) + "]"
	}
	names := actionTexts(t.actions)
	if len(names) > 0 {
		event += " / " + strings.Join(names, ", ")
	}
	return shorten(event, 46)
}

func guardText(g guard) string {
	switch g := g.(type) {
	case *namedGuard:
		return g.name
	case exprGuard:
		return g.when.program.Source().String()
	case allOf:
		return guardTexts(g, " and ")
	case anyOf:
		return guardTexts(g, " or ")
	case noneOf:
		return "not " + guardText(g.guard)
	case inState:
		return "in " + g.node.id
	case routed:
		if g.and != nil {
			return guardText(g.and)
		}
		return g.to
	default:
		return "in state"
	}
}

func guardTexts(all []guard, sep string) string {
	texts := make([]string, len(all))
	for i, g := range all {
		texts[i] = guardText(g)
	}
	return strings.Join(texts, sep)
}

// actionTexts returns the names of the actions in the document. The entry and exit actions that
// after adds are omitted.
func actionTexts(actions []action) []string {
	var all []string
	for _, x := range actions {
		if name := actionText(x); name != "" {
			all = append(all, name)
		}
	}
	return all
}

func actionText(x action) string {
	switch x := x.(type) {
	case *assignAction:
		return x.name
	case *checkAction:
		return x.name
	case *effectAction:
		return x.name
	case *assignTemplate:
		return "assign"
	case *raiseAction:
		return x.text()
	case *sendAction:
		return "send"
	case *cancelAction:
		return ""
	case *emitAction:
		return "emit"
	case *spawnAction:
		return "spawn " + x.src
	case *stopAction:
		return "stop"
	case *chooseAction:
		return "choose"
	default:
		return "log"
	}
}

func (x *raiseAction) text() string {
	switch {
	case x.event.static == nil:
		return "raise"
	case strings.HasPrefix(x.event.static.Type, afterPrefix):
		return ""
	default:
		return "raise " + x.event.static.Type
	}
}

func shorten(s string, most int) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}

// textWide estimates the width of a text, because no font metrics are available.
func textWide(s string, char float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case r >= 0x1100: // wide scripts and emoji
			w += char * 1.9
		case strings.ContainsRune("iljtf.,:;'|![]() ", r):
			w += char * 0.62
		case strings.ContainsRune("mwMW@", r):
			w += char * 1.4
		default:
			w += char
		}
	}
	return w
}
