package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/perdure/perdure/statechart"
)

// stepJSON is the result of a command of a trial: what it did and the new state.
type stepJSON struct {
	Now         int64              `json:"now"`
	Status      statechart.Status  `json:"status"`
	State       any                `json:"state"`
	Context     map[string]any     `json:"context,omitempty"`
	Output      any                `json:"output,omitempty"`
	Error       any                `json:"error,omitempty"`
	Timers      []timerJSON        `json:"timers"`
	Invocations []invocationJSON   `json:"invocations"`
	Happens     *statechart.Step   `json:"step"`
	Children    []statechart.State `json:"children,omitempty"`
}

// timerJSON is a pending timer.
type timerJSON struct {
	Due    int64            `json:"due"`
	ID     string           `json:"id,omitempty"`
	Event  statechart.Event `json:"event"`
	Target string           `json:"target,omitempty"`
	// Of is the state to which the timer belongs, and To are the states to which it leads.
	Of string   `json:"of,omitempty"`
	To []string `json:"to,omitempty"`
}

// invocationJSON is a running invocation.
type invocationJSON struct {
	Path  string `json:"path"`
	Src   string `json:"src"`
	Input any    `json:"input,omitempty"`
}

// report shows what a transition did and the new state.
func (t *trial) report(step *statechart.Step) error {
	s := t.sim.Tree.State()
	r := stepJSON{
		Now: t.sim.Now, Status: s.Status, State: s.Value, Context: s.Context, Output: s.Output, Error: s.Error, Happens: step,
		Children: s.Children, Timers: []timerJSON{}, Invocations: []invocationJSON{},
	}
	for _, timer := range t.sim.Timers() {
		of, to := t.sim.Tree.Leads(timer.Target, timer.Event.Type)
		r.Timers = append(r.Timers, timerJSON{Due: timer.Due, ID: timer.ID, Event: timer.Event, Target: timer.Target, Of: of, To: to})
	}
	for _, op := range t.sim.Tree.Pending() {
		r.Invocations = append(r.Invocations, invocationJSON{Path: op.Path, Src: op.Src, Input: op.Input})
	}
	if t.json {
		return t.line(r)
	}
	t.describe(t.out, step)
	t.place(t.out, r)
	return nil
}

// describe prints what a transition did, grouped by kind.
func (t *trial) describe(w io.Writer, step *statechart.Step) {
	if step.Dropped {
		fmt.Fprintln(w, "  dropped: the actor has finished")
	}
	for _, e := range step.Effects {
		fmt.Fprintf(w, "  effect %s%s\n", plain(e.Name), params(e.Params))
	}
	for _, op := range step.Invocations {
		verb := "stops"
		if op.Start {
			verb = "starts"
		}
		fmt.Fprintf(w, "  invocation %s %s at %s\n", plain(op.Src), verb, plain(op.Path))
	}
	for _, e := range step.Emitted {
		fmt.Fprintf(w, "  emits %s\n", compact(e.Event))
	}
	for _, l := range step.Logs {
		fmt.Fprintf(w, "  logs %s\n", compact(l.Value))
	}
}

// place prints the current state.
func (t *trial) place(w io.Writer, r stepJSON) {
	value := compact(r.State)
	if s, ok := r.State.(string); ok {
		value = plain(s)
	}
	fmt.Fprintf(w, "%s  %s", t.color(grey, elapsed(r.Now)), t.color(green, value))
	if r.Status != statechart.Active {
		fmt.Fprintf(w, "  %s", r.Status)
	}
	fmt.Fprintln(w)
	if len(r.Context) > 0 {
		fmt.Fprintf(w, "  context %s\n", compact(r.Context))
	}
	if r.Output != nil {
		fmt.Fprintf(w, "  output %s\n", compact(r.Output))
	}
	if r.Error != nil {
		fmt.Fprintf(w, "  error %s\n", compact(r.Error))
	}
	for _, timer := range r.Timers {
		fmt.Fprintf(w, "  timer at %s %s%s\n", elapsed(timer.Due), plain(timer.Event.Type), leads(timer))
	}
	for _, task := range r.Invocations {
		fmt.Fprintf(w, "  invocation %s runs at %s%s\n", plain(task.Src), plain(task.Path), params(task.Input))
	}
}

// leads returns the reason of a timer.
func leads(timer timerJSON) string {
	if timer.Of == "" || len(timer.To) == 0 {
		return ""
	}
	return fmt.Sprintf(" (state %s, target %s)", plain(timer.Of), plain(strings.Join(timer.To, ", ")))
}

func params(v any) string {
	if m, ok := v.(map[string]any); v == nil || ok && len(m) == 0 {
		return ""
	}
	return " " + compact(v)
}

// compact returns a value as JSON in one line, which cannot control the terminal.
func compact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return plainJSON(string(raw))
}

// plainJSON escapes unprintable characters that json.Marshal leaves.
func plainJSON(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u007f' || r >= '\u0080' && r < '\u00a0' {
			return '\uFFFD'
		}
		return r
	}, text)
}

// elapsed formats a virtual time.
func elapsed(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
