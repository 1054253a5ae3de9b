// Package xstatetest reads the conformance cases with XState's recorded answers. It defines
// the meaning of the names in their machines, and compares answers. The cases themselves
// are in statechart/testdata.
//
// Only tests may import this package.
package xstatetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// Variable is the environment variable with a folder of more cases.
const Variable = "PERDURE_XSTATE_CORPUS"

// A Case is a machine, a script and XState's answers. The README of the
// conformance cases describes the format.
type Case struct {
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
	Script      []Step                     `json:"script"`
	Expected    []map[string]any           `json:"expected"`
	Persisted   map[string]any             `json:"finalPersisted"`
}

// A Step is one input of the machine.
type Step struct {
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

// Load reads the cases of a folder.
func Load(t testing.TB, folder string) []*Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	var all []*Case
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := &Case{}
		if err := json.Unmarshal(raw, c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if c.Name != "" && c.Expected != nil { // the folder may also contain an index
			all = append(all, c)
		}
	}
	return all
}

// Document returns the machine of a case, as JSON.
func (c *Case) Document() []byte {
	if c.MachineText != "" {
		return []byte(c.MachineText)
	}
	return c.Machine
}

// Parse parses the machine of a case with the vocabulary of the corpus. It accepts
// unreachable states and eventless cycles, which are part of the corpus.
func (c *Case) Parse() (*statechart.Machine, error) {
	return statechart.Parse(c.Document(), c.Registry(),
		&statechart.Options{AllowUnreachable: true, AllowCycles: true, MaxIterations: c.Iterations})
}

// Outcome returns the result of an invocation of the corpus. nil means that it finishes
// later.
func Outcome(op statechart.InvokeOp) *statechart.Outcome {
	switch op.Src {
	case "echo":
		return &statechart.Outcome{Output: op.Input}
	case "fail":
		return &statechart.Outcome{Output: op.Input, Failed: true}
	default:
		return nil
	}
}

// unknownGuards returns the guards that a case names but does not define.
func (c *Case) unknownGuards() []string {
	var names []string
	for _, part := range strings.Split(string(c.Machine), `"`) {
		if strings.HasPrefix(part, "missing") {
			names = append(names, part)
		}
	}
	return names
}
