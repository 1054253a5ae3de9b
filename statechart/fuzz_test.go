package statechart_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/statechart"
)

// FuzzParse checks that no document makes the parser or what it accepts panic,
// and that what it accepts can be stored and restored.
func FuzzParse(f *testing.F) {
	for _, c := range xstatetest.Load(f, "testdata/corpus") {
		if strings.HasPrefix(c.Name, "hand-") {
			f.Add([]byte(c.Machine))
		}
	}
	for _, text := range []string{toggleJSON, playerJSON, `{}`, `{"states":{"a":{"type":"history"}}}`} {
		f.Add([]byte(text))
	}
	reg := &statechart.Registry{Open: true, Guards: xstatetest.Guards(), Actions: xstatetest.Actions()}
	f.Fuzz(func(t *testing.T, raw []byte) {
		begin := time.Now()
		defer func() {
			if d := time.Since(begin); d > time.Minute {
				t.Fatalf("took %v", d)
			}
		}()
		m, err := statechart.Parse(raw, reg, &statechart.Options{AllowCycles: true, AllowUnreachable: true, MaxIterations: 20, MaxEvents: 100})
		if err != nil {
			return
		}
		statechart.SVG(m, nil)
		tree, _, err := m.Start(0, nil)
		if err != nil {
			return
		}
		for _, typ := range append(m.Events(), "E") {
			if _, err := tree.Send(0, statechart.Event{Type: typ}); err != nil {
				continue
			}
			snapshot, err := tree.Snapshot()
			if err != nil {
				continue
			}
			if _, err := m.Restore(snapshot); err != nil {
				t.Fatalf("%v\n%s", err, snapshot)
			}
		}
	})
}
