package statechart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/statechart"
)

// TestXStateCorpus runs every case straight, and again with the tree rebuilt
// from its snapshot between every two steps. The environment variable
// PERDURE_XSTATE_CORPUS names a folder with more cases.
func TestXStateCorpus(t *testing.T) {
	folders := []string{filepath.Join("testdata", "corpus")}
	if more := os.Getenv(xstatetest.Variable); more != "" {
		folders = append(folders, more)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			matched, all := 0, 0
			for _, c := range xstatetest.Load(t, folder) {
				all++
				if t.Run(c.Name, func(t *testing.T) { runCase(t, c) }) {
					matched++
				}
			}
			fmt.Printf("%s: %d/%d cases match\n", folder, matched, all)
		})
	}
}

func runCase(t *testing.T, c *xstatetest.Case) {
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

// A corpusRun plays the script of a case.
type corpusRun struct {
	c   *xstatetest.Case
	m   *statechart.Machine
	sim *statechart.Simulation
	// seen are the answers.
	seen []map[string]any
}

func newCorpusRun(c *xstatetest.Case) *corpusRun { return &corpusRun{c: c} }

func (r *corpusRun) play(hibernate bool) error {
	m, err := r.c.Parse()
	if err != nil {
		return err
	}
	r.m = m
	sim, step, err := statechart.Simulate(m, r.c.Input, xstatetest.Outcome)
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

func (r *corpusRun) step(s xstatetest.Step) (*statechart.Step, error) {
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
	got := r.c.Observe(r.sim.Now, r.sim.Tree, step, r.sim.Timers())
	r.seen = append(r.seen, got)
	return r.c.Check(i, got)
}

// checkPersisted compares the last snapshot with what XState would store.
func (r *corpusRun) checkPersisted() error {
	raw, err := r.sim.Tree.Snapshot()
	if err != nil {
		return err
	}
	return r.c.CheckPersisted(raw)
}
