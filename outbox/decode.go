package outbox

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

// stored is a payload with values that are not decoded yet.
type stored struct {
	JSON struct {
		Version   int              `json:"version"`
		Mutations []storedMutation `json:"mutations"`
		Events    []storedEvent    `json:"events"`
	} `json:"json"`
	Meta struct {
		Values map[string]json.RawMessage `json:"values"`
		V      int                        `json:"v"`
		// Equalities are superjson's annotations for objects that occur twice. Only other
		// writers use them. Ignoring them would change the meaning of the payload.
		Equalities json.RawMessage `json:"referentialEqualities"`
	} `json:"meta"`
}

type storedMutation struct {
	Op           Op                         `json:"op"`
	Schema       string                     `json:"schema"`
	Namespace    string                     `json:"namespace"`
	Table        string                     `json:"table"`
	ExternalID   string                     `json:"externalId"`
	Versionstamp string                     `json:"versionstamp"`
	Values       map[string]json.RawMessage `json:"values"`
	Set          map[string]json.RawMessage `json:"set"`
	CheckVersion json.RawMessage            `json:"checkVersion"`
}

func readStored(payload []byte) (*stored, error) {
	if !utf8.Valid(payload) {
		return nil, fault.Invalidf("payload", "must be valid UTF-8")
	}
	var s stored
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fault.Invalidf("payload", "must be a JSON payload: %v", err)
	}
	if s.JSON.Version != PayloadVersion {
		return nil, fault.Invalidf("version", "must be %d, got %d", PayloadVersion, s.JSON.Version)
	}
	if len(s.Meta.Values) > 0 && s.Meta.V != 1 {
		return nil, fault.Invalidf("meta.v", "must be 1, got %d", s.Meta.V)
	}
	if s.Meta.Equalities != nil {
		return nil, fault.Invalidf("meta.referentialEqualities", "must not be part of a payload")
	}
	return &s, nil
}

// A decoder reads the form that Encode documents.
type decoder struct {
	tags map[string]json.RawMessage // the tags that are not used yet, by path
	refs RefMap
}

func (d *decoder) mutation(op int, s storedMutation) (Mutation, error) {
	m := Mutation{Op: s.Op, Schema: s.Schema, Namespace: s.Namespace, Table: s.Table, ExternalID: s.ExternalID}
	var err error
	if m.Stamp, err = readStamp(mutationPath(op), s.Versionstamp); err != nil {
		return m, err
	}
	if m.Values, err = d.columns(op, "values", s.Values); err != nil {
		return m, err
	}
	if m.Set, err = d.columns(op, "set", s.Set); err != nil {
		return m, err
	}
	if member, columns := m.columns(); member != "" && columns == nil {
		return m, fault.Invalidf(mutationPath(op)+"."+member, "is required")
	}
	if s.CheckVersion != nil {
		m.CheckVersion, err = d.version(mutationPath(op)+".checkVersion", s.CheckVersion)
	}
	return m, err
}

func readStamp(path, text string) (Stamp, error) {
	stamp, err := ParseStamp(text)
	if err != nil || text == "" {
		return Stamp{}, fault.Invalidf(path+".versionstamp", "must be 24 hexadecimal digits")
	}
	return stamp, nil
}

func (d *decoder) columns(op int, member string, stored map[string]json.RawMessage) (map[string]any, error) {
	if stored == nil {
		return nil, nil
	}
	columns := make(map[string]any, len(stored))
	for column, raw := range stored {
		v, err := d.value(columnPath(op, member, column), Ref(op, column), raw)
		if err != nil {
			return nil, err
		}
		columns[column] = v
	}
	return columns, nil
}

func (d *decoder) version(path string, raw json.RawMessage) (*int64, error) {
	v, err := d.value(path, "", raw)
	if err != nil {
		return nil, err
	}
	n, ok := v.(int64)
	if !ok {
		return nil, fault.Invalidf(path, "must be a 64-bit integer")
	}
	return &n, nil
}

// value decodes the value at path. own is the placeholder of its position.
func (d *decoder) value(path string, own Placeholder, raw json.RawMessage) (any, error) {
	switch tag := d.tag(path); tag {
	case "":
		return d.untagged(path, own, raw)
	case tagAsIs:
		return raw, nil
	case tagBytes:
		return readBytes(path, raw)
	default:
		return readTagged(path, tag, raw)
	}
}

// tag returns the tag of a path and removes it from d.tags. It strips white space, which
// databases add.
func (d *decoder) tag(path string) string {
	raw, ok := d.tags[path]
	if !ok {
		return ""
	}
	delete(d.tags, path)
	var tag bytes.Buffer
	if json.Compact(&tag, raw) != nil {
		return string(raw)
	}
	return tag.String()
}

// finish returns an error if a tag was not used: a value was then decoded without its
// tag.
func (d *decoder) finish() error {
	for _, path := range slices.Sorted(maps.Keys(d.tags)) {
		return fault.Invalidf("meta.values", "must not have a tag without a value: %s", path)
	}
	return nil
}

func (d *decoder) untagged(path string, own Placeholder, raw json.RawMessage) (any, error) {
	switch raw[0] {
	case '{':
		return d.object(path, own, raw)
	case '[':
		return raw, nil
	case '"':
		return readText(path, raw)
	case 't', 'f':
		return raw[0] == 't', nil
	case 'n':
		return nil, nil
	default:
		return readNumber(path, string(raw))
	}
}

func (d *decoder) object(path string, own Placeholder, raw json.RawMessage) (any, error) {
	if !own.standsIn(raw) {
		return raw, nil
	}
	id, ok := d.refs[string(own)]
	if !ok {
		return nil, fault.Invalidf(path, "must have placeholders of the reference map only, got %s", own)
	}
	return id, nil
}

func readText(path string, raw json.RawMessage) (s string, err error) {
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fault.Invalidf(path, "must be a string")
	}
	return s, nil
}

// readNumber decodes a number without a fraction as an integer if it fits an int64. A
// larger number without a tag is a float whose exponent jsonb has expanded.
func readNumber(path, literal string) (any, error) {
	if !strings.ContainsAny(literal, ".eE") {
		if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fault.Invalidf(path, "must not be a number that is too large")
	}
	return f, nil
}

func readBytes(path string, raw json.RawMessage) ([]byte, error) {
	var numbers []json.Number
	if err := json.Unmarshal(raw, &numbers); err != nil || numbers == nil {
		return nil, fault.Invalidf(path, "must be an array of bytes")
	}
	b := make([]byte, len(numbers))
	for i, n := range numbers {
		c, err := strconv.ParseUint(n.String(), 10, 8)
		if err != nil {
			return nil, fault.Invalidf(path, "must be an array of bytes")
		}
		b[i] = byte(c)
	}
	return b, nil
}

// readTagged decodes a tagged string.
func readTagged(path, tag string, raw json.RawMessage) (any, error) {
	text, err := readText(path, raw)
	if err != nil {
		return nil, err
	}
	switch tag {
	case tagDate:
		return readTime(path, text)
	case tagBigint:
		return readBigint(path, text)
	case tagNumber:
		return readSpecial(path, text)
	}
	return nil, fault.Invalidf(path, "must have known tags only, got %.64s", tag)
}

func readTime(path, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fault.Invalidf(path, "must be a date")
	}
	return t.UTC(), nil
}

func readBigint(path, digits string) (any, error) {
	if len(digits) > maxBigint {
		return nil, fault.Invalidf(path, "must have at most %d digits", maxBigint)
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, fault.Invalidf(path, "must be an integer")
	}
	if n.IsInt64() {
		return n.Int64(), nil
	}
	return n, nil
}

func readSpecial(path, text string) (float64, error) {
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	case "-0":
		return math.Copysign(0, -1), nil
	}
	return 0, fault.Invalidf(path, "must be NaN, Infinity, -Infinity or -0")
}
