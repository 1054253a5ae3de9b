package statechart

import (
	"errors"
	"strconv"
)

// Snapshot returns the complete state of the tree, for [Machine.Restore]. It is XState's
// persisted snapshot with more keys: nodes, the order of the active states; the generation and
// phase of each child; and the tree's sequence. It does not contain timers: the caller must
// store them too.
//
// Equal trees have equal snapshots. If a snapshot exceeds MaxDocument, the error is a
// *LimitError.
func (t *Tree) Snapshot() ([]byte, error) {
	e := encoder{}
	e.actor(t.root)
	e.comma()
	e.field("sequence", t.sequence)
	e.raw("}")
	if len(e.out) > MaxDocument || errors.Is(e.err, errEncoding) {
		e.err = &LimitError{Limit: LimitSnapshot, Max: MaxDocument}
	}
	return e.out, e.err
}

// An encoder writes a snapshot.
type encoder struct {
	out []byte
	err error
}

func (e *encoder) raw(s string) { e.out = append(e.out, s...) }

func (e *encoder) comma() { e.raw(",") }

func (e *encoder) key(k string) {
	e.out = append(appendText(e.out, k), ':')
}

func (e *encoder) field(k string, v any) {
	e.key(k)
	if e.err == nil {
		e.out, e.err = appendJSON(e.out, v)
	}
}

// actor writes an actor's snapshot without the closing brace.
func (e *encoder) actor(a *actor) {
	e.raw("{")
	e.field("status", string(a.snap.status))
	e.comma()
	e.field("generation", a.generation)
	e.comma()
	e.field("phase", string(a.phase))
	if a.armed {
		e.comma()
		e.field("armed", true)
	}
	if a.input != nil {
		e.comma()
		e.field("input", a.input)
	}
	if a.snap.hasOutput {
		e.comma()
		e.field("output", a.snap.output)
	}
	if a.snap.status == Failed {
		e.comma()
		e.field("error", a.snap.err)
	}
	if a.logic.machine != nil {
		e.machine(a)
	}
}

func (e *encoder) machine(a *actor) {
	e.comma()
	e.field("value", a.logic.machine.value(&a.snap))
	e.comma()
	e.field("nodes", ids(a.snap.nodes))
	e.comma()
	e.field("context", a.snap.context)
	e.comma()
	e.key("historyValue")
	e.history(a)
	e.comma()
	e.key("children")
	e.children(a)
}

func ids(nodes []*node) []any {
	out := make([]any, len(nodes))
	for i, n := range nodes {
		out[i] = n.id
	}
	return out
}

// history writes the stored history in document order.
func (e *encoder) history(a *actor) {
	all := map[string]any{}
	for h, past := range a.snap.history {
		refs := make([]any, len(past))
		for i, n := range past {
			refs[i] = map[string]any{"id": n.id}
		}
		all[h.id] = refs
	}
	if e.err == nil {
		e.out, e.err = appendJSON(e.out, all)
	}
}

func (e *encoder) children(a *actor) {
	e.raw("{")
	for i, c := range a.snap.children {
		if i > 0 {
			e.comma()
		}
		e.key(c.id)
		e.raw(`{"snapshot":`)
		e.actor(c)
		e.raw("},")
		e.field("src", c.src)
		if c.systemID != "" {
			e.comma()
			e.field("systemId", c.systemID)
		}
		e.raw(`,"syncSnapshot":` + strconv.FormatBool(c.sync) + "}")
	}
	e.raw("}")
}

// snapshotValue returns the value that an actor's parent receives in a snapshot event.
func (a *actor) snapshotValue() map[string]any {
	v := map[string]any{"status": string(a.snap.status)}
	if a.logic.machine == nil {
		return v
	}
	v["value"] = a.logic.machine.value(&a.snap)
	v["context"] = a.snap.context
	tags := []any{}
	for _, tag := range a.snap.tags() {
		tags = append(tags, tag)
	}
	v["tags"] = tags
	return v
}
