package edge

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

const (
	// MaxDepth is the deepest nesting of arrays and objects: [] has depth 1. MariaDB
	// rejects 32.
	MaxDepth = 31
	// DefaultMaxJSON is the default maximum size of a document in bytes.
	DefaultMaxJSON = 1 << 20
	// MaxNumber is the longest number in bytes. The longest number within float64's range,
	// written without an exponent, has 309 digits.
	MaxNumber = 512
)

// JSON rejects documents that some database would reject or change. It accepts exactly one
// JSON value that
//
//   - has at most max bytes (DefaultMaxJSON if max ≤ 0) and MaxDepth levels;
//   - is valid UTF-8 without a byte order mark;
//   - contains no NUL, neither as a byte nor as \u0000: PostgreSQL rejects it,
//     SQLite truncates the text there;
//   - contains no lone surrogate: PostgreSQL rejects it, Go replaces it;
//   - has no object with the same key twice, even if the keys are escaped differently:
//     PostgreSQL keeps one of them, the other databases keep both;
//   - has only numbers of at most MaxNumber bytes, with exponents of at most
//     three digits, whose magnitude a float64 can hold: 1e400 is rejected because
//     it becomes infinite, 1e-400 because it becomes zero. Digits beyond a
//     float64's precision are allowed: Perdure never parses them into a float64;
//   - has no negative zero, which jsonb stores as 0.
//
// It reads each byte once and does not recurse. It allocates only to find
// equal keys: a slice header for each key of the open objects, and the text of keys that
// have escapes.
func JSON(field string, raw []byte, max int) error {
	s := scanner{field: field, raw: raw}
	return s.scan(max)
}

// scanner reads one document from start to end.
type scanner struct {
	field string
	raw   []byte
	pos   int

	depth int
	// objects[i] is the index in keys at which the keys of the object at level i start, or
	// array if the level is an array.
	objects [MaxDepth]int
	keys    [][]byte

	// collectZeros accepts negative zeros and collects their positions in zeros.
	collectZeros bool
	zeros        []int
}

const array = -1

func (s *scanner) scan(max int) error {
	if max <= 0 {
		max = DefaultMaxJSON
	}
	if len(s.raw) > max {
		return fault.Invalidf(s.field, "must be at most %d bytes", max)
	}
	if bytes.HasPrefix(s.raw, []byte("\xef\xbb\xbf")) {
		return fault.Invalidf(s.field, "must not start with a byte order mark")
	}
	for more := true; more; {
		opened, err := s.value()
		if err == nil && !opened {
			more, err = s.afterValue()
		}
		if err != nil {
			return err
		}
	}
	s.space()
	if s.pos < len(s.raw) {
		return s.fail("text after the value")
	}
	return nil
}

// value reads a scalar, an empty array or an empty object. For any other array or object it
// reads up to the first element, and returns true for opened.
func (s *scanner) value() (opened bool, err error) {
	s.space()
	switch c := s.peek(); {
	case c == '{':
		return s.openObject()
	case c == '[':
		return s.openArray()
	case c == '"':
		_, _, err = s.text()
		return false, err
	case c == '-' || digit(c):
		return false, s.number()
	default:
		return false, s.literal()
	}
}

// afterValue closes the arrays and objects that end after a value, and reports whether
// another value follows.
func (s *scanner) afterValue() (more bool, err error) {
	for s.depth > 0 {
		s.space()
		switch c := s.peek(); {
		case c == ',':
			s.pos++
			return true, s.nextElement()
		case c == s.closer():
			if err := s.close(); err != nil {
				return false, err
			}
		default:
			return false, s.fail("expected a comma or the end of the array or object")
		}
	}
	return false, nil
}

func (s *scanner) nextElement() error {
	if s.objects[s.depth-1] == array {
		return nil
	}
	return s.key()
}

func (s *scanner) openObject() (opened bool, err error) {
	if err := s.open(len(s.keys)); err != nil {
		return false, err
	}
	if s.peek() == '}' {
		return false, s.close()
	}
	return true, s.key()
}

func (s *scanner) openArray() (opened bool, err error) {
	if err := s.open(array); err != nil {
		return false, err
	}
	if s.peek() == ']' {
		return false, s.close()
	}
	return true, nil
}

func (s *scanner) open(firstKey int) error {
	if s.depth == MaxDepth {
		return fault.Invalidf(s.field, "must be nested at most %d levels deep", MaxDepth)
	}
	s.objects[s.depth] = firstKey
	s.depth++
	s.pos++
	s.space()
	return nil
}

func (s *scanner) closer() byte {
	if s.objects[s.depth-1] == array {
		return ']'
	}
	return '}'
}

func (s *scanner) close() error {
	s.pos++
	s.depth--
	first := s.objects[s.depth]
	if first == array {
		return nil
	}
	if repeats(s.keys[first:]) {
		return fault.Invalidf(s.field, "must not have a key twice, in the object that ends at byte %d", s.pos)
	}
	s.keys = s.keys[:first]
	return nil
}

// repeats sorts keys and reports whether two of them are equal. Sorting needs no memory,
// and no choice of keys makes it slow.
func repeats(keys [][]byte) bool {
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1], keys[i]) {
			return true
		}
	}
	return false
}

// key reads a key and the colon after it.
func (s *scanner) key() error {
	s.space()
	if s.peek() != '"' {
		return s.fail("expected a key")
	}
	text, escaped, err := s.text()
	if err != nil {
		return err
	}
	if escaped {
		text = unescape(text)
	}
	s.keys = append(s.keys, text)
	s.space()
	if s.peek() != ':' {
		return s.fail("expected a colon")
	}
	s.pos++
	return nil
}

// unescape returns the value of text, which was read without an error.
func unescape(text []byte) []byte {
	quoted := append(append(append(make([]byte, 0, len(text)+2), '"'), text...), '"')
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return text // cannot happen: the text is a valid string
	}
	return []byte(s)
}

// text reads a string and returns the bytes between its quotes.
func (s *scanner) text() (text []byte, escaped bool, err error) {
	start := s.pos + 1
	wide := false
	for s.pos = start; s.plain(); s.pos++ {
		switch c := s.raw[s.pos]; {
		case c == '"':
			text = s.raw[start:s.pos]
			if wide && !utf8.Valid(text) {
				return nil, false, fault.Invalidf(s.field, "must be valid UTF-8, in the string that ends at byte %d", s.pos)
			}
			s.pos++
			return text, escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, false, err
			}
		case c < ' ':
			return nil, false, s.fail("control character in a string")
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
	return nil, false, s.fail("string without an end")
}

// plain skips to the next byte of a string that is not a plain ASCII character,
// and reports whether there is one.
func (s *scanner) plain() bool {
	i := s.pos
	for i < len(s.raw) && special[s.raw[i]] == 0 {
		i++
	}
	s.pos = i
	return i < len(s.raw)
}

// special marks the bytes that have a special meaning in a string.
var special = func() (t [256]byte) {
	for c := range t {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			t[c] = 1
		}
	}
	return t
}()

// escape reads the escape at pos and leaves pos at its last byte.
func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		return s.codeUnit()
	}
	return s.fail("unknown escape")
}

// codeUnit reads the digits after \u, and the second half of a surrogate pair.
func (s *scanner) codeUnit() error {
	unit, ok := hex4(s.raw[s.pos+1:])
	if !ok {
		return s.fail("unknown escape")
	}
	s.pos += 4
	switch {
	case unit == 0:
		return s.fail("NUL character")
	case unit < 0xD800 || unit > 0xDFFF:
		return nil
	case unit >= 0xDC00 || !bytes.HasPrefix(s.raw[s.pos+1:], []byte(`\u`)):
		return s.fail("lone surrogate")
	}
	low, ok := hex4(s.raw[s.pos+3:])
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return s.fail("lone surrogate")
	}
	s.pos += 6
	return nil
}

func hex4(b []byte) (unit uint16, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case digit(c):
			unit = unit<<4 | uint16(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | uint16(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}

func (s *scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := s.raw[s.pos:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.pos += len(word)
			return nil
		}
	}
	return s.fail("expected a value")
}

func (s *scanner) space() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte. At the end it returns 0, which is never valid.
func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

func (s *scanner) fail(what string) error {
	return fault.Invalidf(s.field, "must be portable JSON: %s at byte %d", what, s.pos)
}
