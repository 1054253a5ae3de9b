// Package redact removes confidential values from payloads before they are shown: in API
// responses, on pages, in logs and traces. Stored payloads and the payloads of handlers are
// not changed.
//
// A rule is one of
//
//	/card/number     the value at a JSON pointer
//	/items/*/email   … where * matches any key or index
//	/orders/**/iban  … and ** any number of them
//	*password*       every value under a key of that name, in any case and depth
//	common           Names, which are such patterns
//
// Nothing is removed unless there is a rule: programs read payloads over the API too.
package redact

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
)

// Mask replaces a removed value.
const Mask = "[redacted]"

const maskJSON = `"` + Mask + `"`

// Common is the rule that represents Names.
const Common = "common"

// Names are patterns for keys whose values are almost always secret.
var Names = []string{
	"*password*", "*passwd*", "*passphrase*", "*secret*", "*token*", "*credential*", "authorization", "cookie", "set-cookie",
	"*api_key*", "*apikey*", "*api-key*", "*private_key*", "*privatekey*", "card_number", "cardnumber", "cvv", "cvc", "iban", "ssn",
}

// Rules select the values that are removed. Nil removes nothing.
type Rules struct{ rules []rule }

// rule is a path to the removed values: patterns of keys, with anyOf for any number of
// keys.
type rule []string

const (
	one   = "*"
	anyOf = "**"
)

// Parse parses rules that are separated by commas or white space.
func Parse(text string) (*Rules, error) {
	return New(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r <= ' ' })...)
}

// New returns rules. Without rules it returns nil.
func New(rules ...string) (*Rules, error) {
	if i := slices.Index(rules, Common); i >= 0 {
		rules = slices.Concat(rules[:i], Names, rules[i+1:])
	}
	if len(rules) == 0 {
		return nil, nil
	}
	r := &Rules{}
	for _, text := range rules {
		parsed, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		r.rules = append(r.rules, parsed)
	}
	return r, nil
}

func parseRule(text string) (rule, error) {
	if pointer, ok := strings.CutPrefix(text, "/"); ok {
		segments := strings.Split(pointer, "/")
		for i, s := range segments {
			segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
		}
		if last := segments[len(segments)-1]; last == anyOf {
			return nil, fault.Invalidf("redaction rule", "must not end in **, got %q", text)
		}
		return segments, nil
	}
	if _, err := path.Match(text, ""); err != nil || text == "" || strings.Trim(text, "*") == "" || strings.Contains(text, "/") {
		return nil, fault.Invalidf("redaction rule", "must be a JSON pointer that starts with /, or a pattern of names, got %q", text)
	}
	return rule{anyOf, "\x00" + strings.ToLower(text)}, nil // marked as a pattern of names
}

// matches reports whether a segment of a rule matches a key.
func matches(segment, key string) bool {
	if pattern, ok := strings.CutPrefix(segment, "\x00"); ok {
		matched, _ := path.Match(pattern, strings.ReplaceAll(strings.ToLower(key), "/", "_")) // the pattern was validated
		return matched
	}
	return segment == one || segment == key
}

// JSON returns the payload with the values that match a rule replaced by Mask. The rest is
// unchanged, byte for byte. A payload that is not JSON is masked as a whole.
func (r *Rules) JSON(payload json.RawMessage) json.RawMessage {
	shown, _ := r.split(payload)
	return shown
}

// Text returns a text, such as the error of a handler. Values that the rules remove from
// the payload are masked in it.
func (r *Rules) Text(text string, payload json.RawMessage) string {
	if text == "" {
		return text
	}
	_, hidden := r.split(payload)
	for _, value := range hidden {
		text = strings.ReplaceAll(text, value, Mask)
	}
	return text
}

// split returns the payload without the removed values, and the removed values: all texts
// and numbers that are long enough to be recognized in other texts.
func (r *Rules) split(payload json.RawMessage) (json.RawMessage, []string) {
	if r == nil || len(payload) == 0 {
		return payload, nil
	}
	w := newWalker(payload)
	if err := w.value(r.begin(), 0); err != nil || w.more() {
		return json.RawMessage(maskJSON), nil
	}
	return w.result(), w.hidden
}
