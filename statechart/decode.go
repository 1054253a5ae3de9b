package statechart

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

// jsonReader reads one JSON text. Restoring snapshots is most of the CPU cost of an actor, and
// encoding/json takes several times as long for it.
type jsonReader struct {
	field   string
	nesting int
	text    string // valid UTF-8
	at      int
}

// value reads a value without surrounding whitespace.
func (p *jsonReader) value(depth int) (any, error) {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if depth >= p.nesting {
			return nil, fault.Invalidf(p.field, "must be nested at most %d levels deep", p.nesting)
		}
		p.at++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		return p.string()
	case c == '-' || isDigit(c):
		return p.number()
	case c == 't':
		return true, p.word("true")
	case c == 'f':
		return false, p.word("false")
	case c == 'n':
		return nil, p.word("null")
	}
	return nil, p.syntax("a value")
}

func (p *jsonReader) object(depth int) (any, error) {
	o := &object{}
	for more, err := p.first('}'); more || err != nil; more, err = p.more('}') {
		if err != nil {
			return nil, err
		}
		if p.peek() != '"' {
			return nil, p.syntax("a key")
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if o.find(key) >= 0 {
			return nil, fault.Invalidf(p.field, "must not have key %q twice in one object", key)
		}
		p.space()
		if p.peek() != ':' {
			return nil, p.syntax("a colon")
		}
		p.at++
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		o.put(key, v)
	}
	o.scriptOrder()
	return o, nil
}

func (p *jsonReader) array(depth int) (any, error) {
	all := []any{}
	for more, err := p.first(']'); more || err != nil; more, err = p.more(']') {
		if err != nil {
			return nil, err
		}
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// first reports whether an object or array has an element. The reader is then at that element,
// otherwise after the end.
func (p *jsonReader) first(end byte) (bool, error) {
	p.space()
	if p.peek() == end {
		p.at++
		return false, nil
	}
	return true, nil
}

// more reports whether another element follows. It positions the reader like first.
func (p *jsonReader) more(end byte) (bool, error) {
	p.space()
	switch p.peek() {
	case end:
		p.at++
		return false, nil
	case ',':
		p.at++
		p.space()
		return true, nil
	}
	return false, p.syntax("a comma or " + strconv.QuoteRune(rune(end)))
}

func (p *jsonReader) word(w string) error {
	if !strings.HasPrefix(p.text[p.at:], w) {
		return p.syntax("a value")
	}
	p.at += len(w)
	return nil
}

// string reads a string. NUL is rejected, because PostgreSQL cannot store it.
func (p *jsonReader) string() (string, error) {
	p.at++
	from := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			s := p.text[from:p.at]
			p.at++
			return s, nil
		case c == '\\':
			return p.escaped(from)
		case c < ' ':
			return "", p.syntax("no control character in a string")
		}
	}
	return "", p.syntax("the end of a string")
}

// escaped reads the rest of a string from its first escape.
func (p *jsonReader) escaped(from int) (string, error) {
	var s strings.Builder
	for p.at < len(p.text) {
		s.WriteString(p.text[from:p.at])
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return s.String(), nil
		case c < ' ':
			return "", p.syntax("no control character in a string")
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			s.WriteRune(r)
			from = p.at
		default:
			from = p.at
			p.at++
		}
	}
	return "", p.syntax("the end of a string")
}

const (
	escapes   = `"\/bfnrt`
	escapeFor = "\"\\/\b\f\n\r\t"
)

// escape reads an escape sequence. Half of a surrogate pair becomes the replacement character.
func (p *jsonReader) escape() (rune, error) {
	p.at++
	if p.peek() != 'u' {
		i := strings.IndexByte(escapes, p.peek())
		if i < 0 {
			return 0, p.syntax("an escape sequence")
		}
		p.at++
		return rune(escapeFor[i]), nil
	}
	r, ok := hex4(p.text[p.at+1:])
	if !ok {
		return 0, p.syntax("an escape sequence")
	}
	p.at += 5
	if r == 0 {
		return 0, fault.Invalidf(p.field, "must not contain a NUL character, got one before byte %d", p.at)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if strings.HasPrefix(p.text[p.at:], `\u`) {
		low, ok := hex4(p.text[p.at+2:])
		if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
			p.at += 6
			return pair, nil
		}
	}
	return utf8.RuneError, nil
}

// hex4 reads four hexadecimal digits.
func hex4(s string) (rune, bool) {
	if len(s) < 4 || strings.ContainsAny(s[:4], "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(n), err == nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a number. It returns an int64 if the number is an integer that fits, otherwise a
// float64.
func (p *jsonReader) number() (any, error) {
	from := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if err := p.digits(); err != nil {
		return nil, err
	}
	whole := true
	if p.peek() == '.' {
		whole = false
		p.at++
		if err := p.digits(); err != nil {
			return nil, err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		whole = false
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if err := p.digits(); err != nil {
			return nil, err
		}
	}
	n := p.text[from:p.at]
	if whole {
		if i, err := strconv.ParseInt(n, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return nil, fault.Invalidf(p.field, "must not have a number as large as %.40s", n)
	}
	return canonicalFloat(f), nil
}

func (p *jsonReader) digits() error {
	from := p.at
	for isDigit(p.peek()) {
		p.at++
	}
	if p.at == from {
		return p.syntax("a digit")
	}
	return nil
}

// peek returns the next byte, 0 at the end.
func (p *jsonReader) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *jsonReader) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// syntax returns the error of a text with unexpected content.
func (p *jsonReader) syntax(expected string) error {
	if p.at >= len(p.text) {
		return fault.Invalidf(p.field, "is not JSON at byte %d: it ends where %s is expected", p.at, expected)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fault.Invalidf(p.field, "is not JSON at byte %d: %q where %s is expected", p.at, r, expected)
}
