package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// place is a position in a rule.
type place struct {
	rule rule
	next int
}

func (r *Rules) begin() []place {
	places := make([]place, len(r.rules))
	for i, rule := range r.rules {
		places[i] = place{rule, 0}
	}
	return places
}

// follow returns the positions of the rules below a key, and whether a rule matches the
// value there.
func follow(places []place, key string) (below []place, meant bool) {
	for _, p := range places {
		// ** matches the key, and also nothing.
		for p.rule[p.next] == anyOf {
			below = append(below, p)
			p.next++
		}
		if !matches(p.rule[p.next], key) {
			continue
		}
		if p.next++; p.next == len(p.rule) {
			return nil, true
		}
		below = append(below, p)
	}
	return below, false
}

// walker copies JSON without the removed values.
type walker struct {
	raw    []byte
	dec    *json.Decoder
	out    []byte
	copied int // number of bytes of raw that were copied or replaced
	hidden []string
}

func newWalker(raw []byte) *walker {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return &walker{raw: raw, dec: dec}
}

func (w *walker) result() []byte {
	if w.copied == 0 {
		return w.raw
	}
	return append(w.out, w.raw[w.copied:]...)
}

func (w *walker) more() bool {
	_, err := w.dec.Token()
	return !errors.Is(err, io.EOF)
}

// maxDepth is deeper than the limit of package edge.
const maxDepth = 200

var errDepth = errors.New("nested too deeply")

// value processes the next value.
func (w *walker) value(places []place, depth int) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	switch token {
	case json.Delim('{'):
		err = w.object(places, depth)
	case json.Delim('['):
		err = w.array(places, depth)
	}
	return err
}

func (w *walker) object(places []place, depth int) error {
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return err
		}
		if err := w.member(places, key.(string), depth); err != nil { // a key is always a string
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w *walker) array(places []place, depth int) error {
	for i := 0; w.dec.More(); i++ {
		if err := w.member(places, strconv.Itoa(i), depth); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// member processes a value, or replaces it.
func (w *walker) member(places []place, key string, depth int) error {
	below, meant := follow(places, key)
	if !meant {
		return w.value(below, depth+1)
	}
	var value json.RawMessage
	if err := w.dec.Decode(&value); err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	w.out = append(append(w.out, w.raw[w.copied:end-len(value)]...), maskJSON...)
	w.copied = end
	w.hide(value)
	return nil
}

// minHidden is the length of the shortest value that is masked in texts: a shorter value
// would mask unrelated words.
const minHidden = 4

// hide records the texts and numbers of a value that was replaced.
func (w *walker) hide(value json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		text, ok := token.(string)
		if number, is := token.(json.Number); is {
			text, ok = number.String(), true
		}
		if ok && len(text) >= minHidden {
			w.hidden = append(w.hidden, text)
		}
	}
}
