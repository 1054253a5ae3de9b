//go:build !race

package fsm

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// TestInterleavingsOnMySQL runs the pairs on MariaDB. Who waits for whom differs there: an
// outcome locks its lease alone.
func TestInterleavingsOnMySQL(t *testing.T) {
	t.Parallel()
	all := slices.Concat(pairs(), morePairs(), treePairs(), reopenPairs())
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, enginetest.MySQL, p.quiet...)
			report := interleave.Run(t, p.test(s, make([]mutation, 3)))
			t.Logf("%d schedules, %d with a wait", report.Schedules, report.Waited)
			for name, mutant := range mutantsOnMySQL[p.name] {
				p.catch(t, s, name, mutant)
			}
		})
	}
	for name := range mutantsOnMySQL {
		if !slices.ContainsFunc(all, func(p pair) bool { return p.name == name }) {
			t.Errorf("there are mutants of %q, which is no pair", name)
		}
	}
}
