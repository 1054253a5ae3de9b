package xstatetest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/perdure/perdure/statechart"
)

// Keys are the parts of an answer that are compared.
var Keys = []string{
	"t", "status", "value", "active", "context", "tags", "meta", "output", "effects", "emitted", "logs", "timers", "can", "children",
}

// Check compares an answer with XState's. A step without an answer of XState is not
// compared.
func (c *Case) Check(i int, got map[string]any) error {
	want := c.Expected[i]
	if want == nil {
		return nil
	}
	for _, key := range Keys {
		if !Same(want[key], got[key]) {
			return Differ(i, key, want[key], got[key])
		}
	}
	if want["status"] == "error" && c.ErrorText == "" && !Same(want["error"], got["error"]) {
		return Differ(i, "error", want["error"], got["error"])
	}
	return nil
}

// Observe describes a tree, a step, the pending timers and the time in the format of the
// corpus.
func (c *Case) Observe(now int64, tree *statechart.Tree, step *statechart.Step, timers []statechart.Timer) map[string]any {
	o := describe(tree.State())
	o["t"] = now
	for _, e := range step.Effects {
		entry := map[string]any{"actor": e.Path, "name": e.Params["name"]}
		if data, ok := e.Params["data"]; ok {
			entry["data"] = data
		}
		add(o, "effects", entry)
	}
	for _, e := range step.Emitted {
		if e.Path == "" {
			add(o, "emitted", e.Event)
		}
	}
	for _, l := range step.Logs {
		add(o, "logs", l.Value)
	}
	for _, t := range timers {
		entry := map[string]any{"at": t.Due, "id": t.ID, "source": t.Path, "target": t.Target, "event": t.Event}
		if t.ID == "" {
			entry["id"] = nil
		}
		add(o, "timers", entry)
	}
	if c.Alphabet != nil && tree.Status() == statechart.Active {
		o["can"] = c.can(tree)
	}
	return throughJSON(o).(map[string]any)
}

func (c *Case) can(tree *statechart.Tree) map[string]any {
	can := map[string]any{}
	for _, typ := range c.Alphabet {
		ok, err := tree.Can(statechart.Event{Type: typ})
		can[typ] = ok
		if err != nil {
			can[typ] = "throws"
		}
	}
	return can
}

// Differ returns an error that describes the difference.
func Differ(i int, key string, want, got any) error {
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	return fmt.Errorf("step %d: %s:\nwant %s\n got %s", i, key, w, g)
}

// CheckPersisted compares the last snapshot with what XState would store.
func (c *Case) CheckPersisted(raw []byte) error {
	if c.Persisted == nil || c.Persisted["$error"] != nil {
		return nil
	}
	var got any
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if !covers(c.Persisted, got, c.ErrorText != "") {
		return Differ(len(c.Script), "finalPersisted", c.Persisted, got)
	}
	return nil
}

// covers reports whether got contains everything in want.
func covers(want, got any, anyError bool) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return Same(want, got)
	}
	g, ok := got.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range w {
		if k == "error" && anyError || k == "input" {
			continue
		}
		if !covers(v, g[k], anyError) {
			return false
		}
	}
	return true
}

func describe(s statechart.State) map[string]any {
	o := map[string]any{"status": s.Status}
	if !s.Invocation {
		o["value"], o["active"], o["context"] = s.Value, s.Active, s.Context
		if len(s.Tags) > 0 {
			o["tags"] = s.Tags
		}
		if len(s.Meta) > 0 {
			o["meta"] = s.Meta
		}
	}
	if s.Output != nil { // JavaScript distinguishes undefined from null, Go does not
		o["output"] = s.Output
	}
	if s.Status == statechart.Failed {
		o["error"] = s.Error
	}
	if len(s.Children) > 0 {
		kids := map[string]any{}
		for _, c := range s.Children {
			kids[c.ID] = describe(c)
		}
		o["children"] = kids
	}
	return o
}

func add(o map[string]any, key string, v any) {
	l, _ := o[key].([]any)
	o[key] = append(l, v)
}

func throughJSON(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// Same compares decoded JSON as the README specifies: missing, null and empty are equal.
func Same(a, b any) bool {
	if isEmpty(a) && isEmpty(b) {
		return true
	}
	return reflect.DeepEqual(withoutNoOutput(a), b)
}

// withoutNoOutput leaves out outputs that are null.
func withoutNoOutput(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, e := range m {
		if k == "output" && e == nil {
			delete(m, k)
		} else {
			withoutNoOutput(e)
		}
	}
	return m
}

func isEmpty(v any) bool {
	l, ok := v.([]any)
	return v == nil || ok && len(l) == 0
}
