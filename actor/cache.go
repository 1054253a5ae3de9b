package actor

import (
	"container/list"
	"sync"

	"github.com/perdure/perdure/statechart"
)

// entryCost is the memory of a cached tree in addition to its snapshot, in bytes. The decoded
// form of a snapshot is several times as large as its text.
const (
	entryCost  = 1 << 10
	treeFactor = 6
)

// cached is a committed tree.
type cached struct {
	ref         Ref
	incarnation string
	sequence    int64
	machine     int64
	tree        *statechart.Tree
	size        int
}

func (c *cached) cost() int { return entryCost + treeFactor*c.size }

// cache keeps the trees of recently used actors, so that their next transition need not read
// and decode the snapshot. It is only a copy: a tree is used only if the actor's row still has
// the tree's sequence.
//
// The caller that takes a tree owns it, because using a tree changes it.
type cache struct {
	mu    sync.Mutex
	limit int // bytes
	used  int
	order *list.List // the most recent first
	byRef map[Ref]*list.Element
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), byRef: map[Ref]*list.Element{}}
}

// take removes and returns the tree of an actor, or nil.
func (c *cache) take(ref Ref) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byRef[ref]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

// put adds a tree as the most recent one and evicts the oldest trees beyond the limit.
func (c *cache) put(n *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byRef[n.ref]; e != nil {
		if e.Value.(*cached).sequence > n.sequence && e.Value.(*cached).incarnation == n.incarnation {
			return // the cached tree is newer
		}
		c.remove(e)
	}
	c.byRef[n.ref] = c.order.PushFront(n)
	c.used += n.cost()
	for c.used > c.limit && c.order.Len() > 0 {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(e *list.Element) *cached {
	n := c.order.Remove(e).(*cached)
	delete(c.byRef, n.ref)
	c.used -= n.cost()
	return n
}

// drop removes an actor from the cache.
func (c *cache) drop(ref Ref) { c.take(ref) }
