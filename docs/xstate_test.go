package docs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/xstatetest"
)

// The guide has the numbers of the cases that are in the repository.
func TestTheNumberOfXStateCasesIsRight(t *testing.T) {
	t.Parallel()
	hand, random, steps, differ := 0, 0, 0, 0
	for _, c := range xstatetest.Load(t, filepath.Join(root, "statechart", "testdata", "corpus")) {
		if strings.HasPrefix(c.Name, "hand-") {
			hand++
		} else {
			random++
		}
		if c.Divergence != "" {
			differ++
		}
		steps += len(c.Script)
	}
	all := hand + random
	page := strings.ReplaceAll(strings.ReplaceAll(pages(t)["docs/guide/from-xstate.md"], "\n", " "), ",", "")
	for _, want := range []string{
		fmt.Sprintf("%d recorded cases", all), fmt.Sprintf("%d written by hand", hand), fmt.Sprintf("%d random machines", random),
		fmt.Sprintf("with %d steps", steps), fmt.Sprintf("%d of them match", all-differ), fmt.Sprintf("the other %d Perdure", differ),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/guide/from-xstate.md must have %q", want)
		}
	}
}
