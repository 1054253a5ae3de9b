package api

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// A drawing is made once for all who ask for it, also at the same time.
func TestADrawingIsMadeOnce(t *testing.T) {
	t.Parallel()
	var c drawings
	var made atomic.Int32
	key := drawingKey{&statechart.Machine{}, "a"}
	release := make(chan struct{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			svg := c.get(key, func() []byte {
				made.Add(1)
				<-release
				return []byte("svg")
			})
			if string(svg) != "svg" {
				t.Errorf("got %q", svg)
			}
		})
	}
	close(release)
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("it was made %d times", n)
	}
	c.get(drawingKey{key.machine, "b"}, func() []byte { made.Add(1); return nil })
	c.get(drawingKey{&statechart.Machine{}, "a"}, func() []byte { made.Add(1); return nil })
	if n := made.Load(); n != 3 {
		t.Errorf("%d were made, want 3: others are not the same", n)
	}
}

// The drawings that are kept are bounded by number and size, and the last used stay.
func TestDrawingsAreBounded(t *testing.T) {
	t.Parallel()
	m := &statechart.Machine{}
	for _, size := range []int{1, maxDrawn / 4, maxDrawn + 1} {
		var c drawings
		for i := range 3 * maxDrawings {
			key := drawingKey{m, fmt.Sprint(i)}
			c.get(key, func() []byte { return make([]byte, size) })
			if c.order.Len() > maxDrawings || len(c.byKey) != c.order.Len() || c.size != size*c.order.Len() || c.size > maxDrawn && c.order.Len() > 1 {
				t.Fatalf("%d drawings, %d keys, %d bytes", c.order.Len(), len(c.byKey), c.size)
			}
			c.get(key, func() []byte { t.Error("the last one was forgotten"); return nil })
		}
	}
}
