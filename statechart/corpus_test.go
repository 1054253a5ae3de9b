package statechart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// A corpusCase is a machine, a script and XState's answers. The README of the
// conformance cases describes the format.
type corpusCase struct {
	Name        string                     `json:"name"`
	Divergence  string                     `json:"divergence"`
	ErrorText   string                     `json:"errorText"`
	Hibernates  bool                       `json:"hibernateInvariant"`
	Input       any                        `json:"input"`
	Delays      map[string]any             `json:"delays"`
	Machines    map[string]json.RawMessage `json:"machines"`
	Machine     json.RawMessage            `json:"machine"`
	MachineText string                     `json:"machineText"`
	Iterations  int                        `json:"maxIterations"`
	Alphabet    []string                   `json:"alphabet"`
	Script      []corpusStep               `json:"script"`
	Expected    []map[string]any           `json:"expected"`
	Persisted   map[string]any             `json:"finalPersisted"`
}

type corpusStep struct {
	Event     json.RawMessage `json:"event"`
	AdvanceMs *int64          `json:"advanceMs"`
	Resolve   *struct {
		Actor  string `json:"actor"`
		Output any    `json:"output"`
	} `json:"resolve"`
	Reject *struct {
		Actor string `json:"actor"`
		Error any    `json:"error"`
	} `json:"reject"`
}

// TestXStateCorpus runs every case straight, and again with the tree rebuilt
// from its snapshot between every two steps. The environment variable
// PERDURE_XSTATE_CORPUS names a folder with more cases.
func TestXStateCorpus(t *testing.T) {
	folders := []string{filepath.Join("testdata", "corpus")}
	if more := os.Getenv("PERDURE_XSTATE_CORPUS"); more != "" {
		folders = append(folders, more)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			matched, all := 0, 0
			for _, c := range loadCorpus(t, folder) {
				all++
				if t.Run(c.Name, func(t *testing.T) { runCase(t, c) }) {
					matched++
				}
			}
			fmt.Printf("%s: %d/%d cases match\n", folder, matched, all)
		})
	}
}

func loadCorpus(t testing.TB, folder string) []*corpusCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	var all []*corpusCase
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := &corpusCase{}
		if err := json.Unmarshal(raw, c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if c.Name != "" && c.Expected != nil { // the folder may hold an index too
			all = append(all, c)
		}
	}
	return all
}

func runCase(t *testing.T, c *corpusCase) {
	if c.Divergence != "" {
		checkDivergence(t, c)
		return
	}
	for _, mode := range []string{"straight", "hibernating"} {
		r := newCorpusRun(c)
		if err := r.play(mode == "hibernating"); err != nil {
			t.Errorf("%s: %v", mode, err)
			return
		}
	}
}

// parse reads the machine of a case with the vocabulary of the corpus. States
// that nothing reaches and eventless cycles are part of it.
func (c *corpusCase) parse() (*statechart.Machine, error) {
	text := []byte(c.Machine)
	if c.MachineText != "" {
		text = []byte(c.MachineText)
	}
	return statechart.Parse(text, c.registry(),
		&statechart.Options{AllowUnreachable: true, AllowCycles: true, MaxIterations: c.Iterations})
}

// A corpusRun plays the script of a case.
type corpusRun struct {
	c   *corpusCase
	m   *statechart.Machine
	sim *statechart.Simulation
	// seen are the answers.
	seen []map[string]any
}

func newCorpusRun(c *corpusCase) *corpusRun { return &corpusRun{c: c} }

func (r *corpusRun) play(hibernate bool) error {
	m, err := r.c.parse()
	if err != nil {
		return err
	}
	r.m = m
	sim, step, err := statechart.Simulate(m, r.c.Input, corpusTask)
	if err != nil {
		return err
	}
	r.sim = sim
	if err := r.check(0, step); err != nil {
		return err
	}
	for i, s := range r.c.Script {
		if hibernate {
			if err := r.rebuild(); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		step, err := r.step(s)
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if err := r.check(i+1, step); err != nil {
			return err
		}
	}
	return r.checkPersisted()
}

// corpusTask is how the tasks of the corpus end.
func corpusTask(op statechart.TaskOp) *statechart.Outcome {
	switch op.Src {
	case "echo":
		return &statechart.Outcome{Output: op.Input}
	case "fail":
		return &statechart.Outcome{Output: op.Input, Failed: true}
	default:
		return nil
	}
}

// rebuild throws the tree away and goes on with one made from its snapshot.
func (r *corpusRun) rebuild() error {
	raw, err := r.sim.Tree.Snapshot()
	if err != nil {
		return err
	}
	if r.sim.Tree, err = r.m.Restore(raw); err != nil {
		return err
	}
	again, err := r.sim.Tree.Snapshot()
	if err == nil && string(again) != string(raw) {
		err = fmt.Errorf("restored snapshot differs:\n%s\n%s", raw, again)
	}
	return err
}

func (r *corpusRun) step(s corpusStep) (*statechart.Step, error) {
	switch {
	case s.Event != nil:
		e, err := statechart.ParseEvent(s.Event)
		if err != nil {
			return nil, err
		}
		return r.sim.Send(e)
	case s.AdvanceMs != nil:
		return r.sim.Advance(*s.AdvanceMs)
	case s.Resolve != nil:
		return r.sim.Finish(s.Resolve.Actor, statechart.Outcome{Output: s.Resolve.Output})
	case s.Reject != nil:
		return r.sim.Finish(s.Reject.Actor, statechart.Outcome{Output: s.Reject.Error, Failed: true})
	default:
		return nil, fmt.Errorf("unknown step")
	}
}

// check compares an answer with XState's.
func (r *corpusRun) check(i int, step *statechart.Step) error {
	got := r.observe(step)
	r.seen = append(r.seen, got)
	want := r.c.Expected[i]
	if want == nil {
		return nil // of a divergence, which is checked otherwise
	}
	for _, key := range []string{
		"t", "status", "value", "active", "context", "tags", "meta", "output", "effects", "emitted", "logs", "timers", "can", "children",
	} {
		if !sameJSON(want[key], got[key]) {
			return differ(i, key, want[key], got[key])
		}
	}
	if want["status"] == "error" && r.c.ErrorText == "" && !sameJSON(want["error"], got["error"]) {
		return differ(i, "error", want["error"], got["error"])
	}
	return nil
}

func differ(i int, key string, want, got any) error {
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	return fmt.Errorf("step %d: %s:\nwant %s\n got %s", i, key, w, g)
}

// checkPersisted compares the last snapshot with what XState would store.
func (r *corpusRun) checkPersisted() error {
	if r.c.Persisted == nil || r.c.Persisted["$error"] != nil {
		return nil
	}
	raw, err := r.sim.Tree.Snapshot()
	if err != nil {
		return err
	}
	var got any
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if !covers(r.c.Persisted, got, r.c.ErrorText != "") {
		return differ(len(r.c.Script), "finalPersisted", r.c.Persisted, got)
	}
	return nil
}

// covers says whether got has all that want has.
func covers(want, got any, anyError bool) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return sameJSON(want, got)
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

// observe describes the tree and the step as the corpus does.
func (r *corpusRun) observe(step *statechart.Step) map[string]any {
	o := describe(r.sim.Tree.State())
	o["t"] = r.sim.Now
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
	for _, t := range r.sim.Timers() {
		entry := map[string]any{"at": t.Due, "id": t.ID, "source": t.Path, "target": t.Target, "event": t.Event}
		if t.ID == "" {
			entry["id"] = nil
		}
		add(o, "timers", entry)
	}
	if r.c.Alphabet != nil && r.sim.Tree.Status() == statechart.Active {
		o["can"] = r.can()
	}
	return throughJSON(o).(map[string]any)
}

func (r *corpusRun) can() map[string]any {
	can := map[string]any{}
	for _, typ := range r.c.Alphabet {
		ok, err := r.sim.Tree.Can(statechart.Event{Type: typ})
		can[typ] = ok
		if err != nil {
			can[typ] = "throws"
		}
	}
	return can
}

func describe(s statechart.State) map[string]any {
	o := map[string]any{"status": s.Status}
	if !s.Task {
		o["value"], o["active"], o["context"] = s.Value, s.Active, s.Context
		if len(s.Tags) > 0 {
			o["tags"] = s.Tags
		}
		if len(s.Meta) > 0 {
			o["meta"] = s.Meta
		}
	}
	if s.Output != nil { // JavaScript tells undefined from null, we do not
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

// sameJSON compares decoded JSON as the README asks: missing, null and empty are
// equal.
func sameJSON(a, b any) bool {
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

// unknownGuards are the guards that a case names without having them.
func (c *corpusCase) unknownGuards() []string {
	var names []string
	for _, part := range strings.Split(string(c.Machine), `"`) {
		if strings.HasPrefix(part, "missing") {
			names = append(names, part)
		}
	}
	return names
}
