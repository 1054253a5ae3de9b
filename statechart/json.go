package statechart

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

const (
	// MaxDocument is the maximum size of a machine or snapshot in bytes.
	MaxDocument = 4 << 20
	// maxNesting is the maximum nesting of arrays and objects in a document, and of a value in
	// a snapshot. Each state takes two levels.
	maxNesting = 128
	// maxSnapshotNesting leaves room for the actors that contain the values.
	maxSnapshotNesting = maxNesting + 4*maxActorDepth
)

// decode reads a document. Objects become *object. Numbers become int64 if they are integers
// that fit, otherwise float64.
func decode(field string, raw []byte) (any, error) { return decodeWithin(field, raw, maxNesting) }

func decodeWithin(field string, raw []byte, nesting int) (any, error) {
	if len(raw) > MaxDocument {
		return nil, fault.Invalidf(field, "must be at most %d bytes", MaxDocument)
	}
	if !utf8.Valid(raw) {
		return nil, fault.Invalidf(field, "must be valid UTF-8")
	}
	p := jsonReader{field: field, nesting: nesting, text: string(raw)}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.text) {
		return nil, fault.Invalidf(field, "must not have text after the value, at byte %d", p.at)
	}
	return v, nil
}

// compareKeys orders two keys as JavaScript does, given that the first was inserted before the
// second.
func compareKeys(a, b string) int {
	i, aok := index(a)
	j, bok := index(b)
	switch {
	case aok && bok:
		return cmp.Compare(i, j)
	case aok:
		return -1
	case bok:
		return 1
	default:
		return 0
	}
}

func isIndex(key string) bool {
	_, ok := index(key)
	return ok
}

// index returns a key as an array index, 0 to 2³²-2, if it is the canonical
// text of one.
func index(key string) (int64, bool) {
	if key == "" || len(key) > 10 || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(key, 10, 64)
	return n, err == nil && n < 1<<32-1
}

// at returns the place of a key below another place.
func at(place, key string) string {
	if key != "" && strings.IndexFunc(key, notPlain) < 0 {
		return place + "." + key
	}
	return place + "[" + strconv.Quote(key) + "]"
}

func notPlain(r rune) bool {
	return r != '_' && r != '-' && r != '$' && r != '@' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
}

// nth returns the place of an element of an array.
func nth(place string, i int) string { return place + "[" + strconv.Itoa(i) + "]" }
