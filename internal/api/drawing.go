package api

import (
	"container/list"
	"sync"

	"github.com/perdure/perdure/statechart"
)

const (
	// maxDrawings and maxDrawn bound the cached drawings, by number and in bytes.
	maxDrawings = 64
	maxDrawn    = 32 << 20
)

// drawings caches the most recently used drawings. A statechart version never changes: a
// new definition is a new version.
type drawings struct {
	mu    sync.Mutex
	order list.List // of *drawn, most recently used first
	byKey map[drawingKey]*list.Element
	size  int
}

// drawingKey is a statechart with the states to highlight.
type drawingKey struct {
	machine *statechart.Machine
	active  string
}

// drawn is a drawing that is made once for all concurrent requests.
type drawn struct {
	key  drawingKey
	make func() []byte
	size int // 0 until it is made
}

// get returns the drawing for a key. It calls draw if the drawing is not cached.
func (c *drawings) get(key drawingKey, draw func() []byte) []byte {
	d := c.enter(key, draw)
	svg := d.make()
	c.made(d, len(svg))
	return svg
}

func (c *drawings) enter(key drawingKey, draw func() []byte) *drawn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*drawn)
	}
	if c.byKey == nil {
		c.byKey = map[drawingKey]*list.Element{}
	}
	d := &drawn{key: key, make: sync.OnceValue(draw)}
	c.byKey[key] = c.order.PushFront(d)
	return d
}

// made records the size of a drawing and evicts drawings above the bounds.
func (c *drawings) made(d *drawn, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[d.key]; ok && e.Value == d && d.size == 0 {
		d.size = size
		c.size += size
	}
	for c.order.Len() > maxDrawings || c.size > maxDrawn && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*drawn)
		delete(c.byKey, oldest.key)
		c.size -= oldest.size
	}
}
