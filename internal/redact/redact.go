// Package redact takes what is nobody's business out of payloads before they are
// shown: in answers of the API, on pages, in logs and traces. What is stored and
// what handlers are given is not touched.
//
// A rule is one of
//
//	/card/number     the value at a JSON pointer
//	/items/*/email   … where * stands for any key or index
//	/orders/**/iban  … and ** for any number of them
//	*password*       every value under a key of that name, in any case and depth
//	common           Names, which are such patterns
//
// Nothing is taken out unless there is a rule: programs read payloads over the API
// too.
package redact

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
)

// Mask stands where a value was.
const Mask = "[redacted]"

const maskJSON = `"` + Mask + `"`

// Common is the rule that stands for Names.
const Common = "common"

// Names are names of values that are secret nearly everywhere.
var Names = []string{
	"*password*", "*passwd*", "*passphrase*", "*secret*", "*token*", "*credential*", "authorization", "cookie", "set-cookie",
	"*api_key*", "*apikey*", "*api-key*", "*private_key*", "*privatekey*", "card_number", "cardnumber", "cvv", "cvc", "iban", "ssn",
}

// Rules say what is taken out. nil takes out nothing.
type Rules struct{ rules []rule }

// rule is a path to what is taken out: patterns of keys, anyOf for any number of them.
type rule []string

const (
	one   = "*"
	anyOf = "**"
)

// Parse reads rules with commas or white space between them.
func Parse(text string) (*Rules, error) {
	return New(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r <= ' ' })...)
}

// New returns rules; none are nil.
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
			return nil, fault.Invalidf("redaction rule", "%q ends in **, which stands for nothing in particular", text)
		}
		return segments, nil
	}
	if _, err := path.Match(text, ""); err != nil || text == "" || strings.Trim(text, "*") == "" || strings.Contains(text, "/") {
		return nil, fault.Invalidf("redaction rule", "%q is neither a JSON pointer, beginning with /, nor a pattern of names", text)
	}
	return rule{anyOf, "\x00" + strings.ToLower(text)}, nil // marked as a pattern of names
}

// matches says whether a segment of a rule means a key.
func matches(segment, key string) bool {
	if pattern, ok := strings.CutPrefix(segment, "\x00"); ok {
		matched, _ := path.Match(pattern, strings.ReplaceAll(strings.ToLower(key), "/", "_")) // the pattern was checked
		return matched
	}
	return segment == one || segment == key
}

// JSON returns the payload with the values that a rule means replaced by Mask.
// The rest stays as it is, byte for byte. What is not JSON is masked whole.
func (r *Rules) JSON(payload json.RawMessage) json.RawMessage {
	shown, _ := r.split(payload)
	return shown
}

// Text returns a text, such as the error of a handler, with the values masked
// that the rules take out of its payload.
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

// split returns the payload without what is hidden, and that: all texts and
// numbers which are long enough to be told from others.
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
