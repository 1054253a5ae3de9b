package statechart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/statechart"
)

// wellFormed reads a drawing to its end and returns its texts.
func wellFormed(t *testing.T, svg []byte) []string {
	t.Helper()
	var texts []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		if s, ok := token.(xml.CharData); ok {
			texts = append(texts, string(s))
		}
	}
}

func TestDrawingShowsStatesTransitionsAndWhatIsActive(t *testing.T) {
	t.Parallel()
	svg := statechart.SVG(parse(t, playerJSON), []string{"player.volume.muted"})
	all := strings.Join(wellFormed(t, svg), "|")
	for _, text := range []string{"player", "transport", "paused", "PAUSE", "after 1 min", "NEXT / assign", "always [context.track > 1000000000]", "*"} {
		if !strings.Contains("|"+all+"|", "|"+text+"|") {
			t.Errorf("%q is not in the drawing: %s", text, all)
		}
	}
	if n := strings.Count(string(svg), ` on"`); n != 1 {
		t.Errorf("%d states are highlighted, want 1", n)
	}
}

func TestDrawingIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	first := statechart.SVG(parse(t, playerJSON), nil)
	for range 10 {
		if again := statechart.SVG(parse(t, playerJSON), nil); !bytes.Equal(first, again) {
			t.Fatal("two drawings of one machine differ")
		}
	}
}

func TestDrawingEscapesWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"</svg><script>alert(1)</script>","initial":"<b>","states":{"<b>":{"description":"<i>","on":{"\"><x":"c&d"}},"c&d":{}}}`)
	svg := statechart.SVG(m, nil)
	wellFormed(t, svg)
	for _, bad := range []string{"<script", "<b>", "<i>", "<x"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("%s is in the drawing", bad)
		}
	}
}

func TestEveryMachineOfTheCorpusCanBeDrawn(t *testing.T) {
	t.Parallel()
	for _, c := range xstatetest.Load(t, "testdata/corpus") {
		if m, err := c.Parse(); err == nil {
			wellFormed(t, statechart.SVG(m, nil))
		}
	}
}

// dense is a machine in which each of n states has a transition to each other.
func dense(n int) string {
	var states []string
	for i := range n {
		var on []string
		for j := range n {
			on = append(on, fmt.Sprintf(`"E%d":"s%d"`, j, j))
		}
		states = append(states, fmt.Sprintf(`"s%d":{"on":{%s}}`, i, strings.Join(on, ",")))
	}
	return `{"id":"dense","initial":"s0","states":{` + strings.Join(states, ",") + "}}"
}

// The work for a drawing is bounded, also for a machine with 22,350 arrows, and all of
// them are drawn.
func TestTheWorkForADrawingIsBounded(t *testing.T) {
	t.Parallel()
	small, large := parse(t, dense(30)), parse(t, dense(150))
	one := (150 + 150*150) // things that a place can be compared with
	if looks := statechart.DrawingLooks(large); looks < statechart.MaxLooks || looks > statechart.MaxLooks+one {
		t.Errorf("%d looks, want %d and at most one place more", looks, statechart.MaxLooks)
	}
	if looks := statechart.DrawingLooks(small); looks >= statechart.MaxLooks {
		t.Errorf("a machine of 30 states needs %d looks", looks)
	}
	// 149 arrows, and a line in the box of the state that stays.
	if labels := bytes.Count(statechart.SVG(large, nil), []byte(">E149<")); labels != 150 {
		t.Errorf("%d labels of an event, want 150", labels)
	}
}
