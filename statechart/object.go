package statechart

import "slices"

// manyKeys is the number of keys above which an object has an index. Most objects are small:
// comparing a few keys is faster than a map and needs less memory.
const manyKeys = 16

// fewKeys is the initial capacity of an object.
const fewKeys = 8

// An object is a JSON object whose keys have JavaScript's enumeration order. The order of
// states is the order of the keys.
type object struct {
	keys  []string
	list  []any          // the value of each key
	index map[string]int // the place of each key, nil unless there are many
}

// find returns the place of a key, -1 if the object does not have it.
func (o *object) find(key string) int {
	if o.index == nil {
		return slices.Index(o.keys, key)
	}
	if i, ok := o.index[key]; ok {
		return i
	}
	return -1
}

// get returns the value of a key, and whether the object has the key.
func (o *object) get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.list[i], true
	}
	return nil, false
}

// value returns the value of a key, nil if the object does not have it.
func (o *object) value(key string) any {
	v, _ := o.get(key)
	return v
}

// put sets the value of a key. A new key is appended.
func (o *object) put(key string, v any) {
	if i := o.find(key); i >= 0 {
		o.list[i] = v
		return
	}
	if o.keys == nil {
		o.keys, o.list = make([]string, 0, fewKeys), make([]any, 0, fewKeys)
	}
	o.keys, o.list = append(o.keys, key), append(o.list, v)
	if o.index != nil {
		o.index[key] = len(o.keys) - 1
	} else if len(o.keys) > manyKeys {
		o.reindex()
	}
}

func (o *object) reindex() {
	o.index = make(map[string]int, 2*len(o.keys))
	for i, k := range o.keys {
		o.index[k] = i
	}
}

// scriptOrder sorts the keys in JavaScript's order: array indexes first, ascending, then the
// other keys in insertion order.
func (o *object) scriptOrder() {
	if !slices.ContainsFunc(o.keys, isIndex) {
		return
	}
	order := make([]int, len(o.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareKeys(o.keys[i], o.keys[j]) })
	keys, list := make([]string, len(order)), make([]any, len(order))
	for to, from := range order {
		keys[to], list[to] = o.keys[from], o.list[from]
	}
	o.keys, o.list = keys, list
	if o.index != nil {
		o.reindex()
	}
}
