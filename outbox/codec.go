package outbox

import (
	"strconv"
	"strings"
)

// Encode returns the stored form of a payload. It returns a *fault.Invalid for a payload
// that Decode would not reproduce. Equal payloads have equal bytes: columns and tags are
// sorted by name.
//
// # The form
//
// The form is superjson's (wire version 1), so that a JavaScript consumer can read an
// entry with superjson.deserialize. It is a JSON object. Its member "json" is the
// payload. Its member "meta" tags the JSON values that represent types which JSON does
// not have. Without such values there is no "meta".
//
//	{
//	  "json": {"version": 1, "mutations": [{
//	    "op": "create", "schema": "blog", "namespace": "blog", "table": "posts", "externalId": "p1",
//	    "versionstamp": "000000000000000000070000",
//	    "values": {"authorId": {"__ref": "0.authorId"}, "createdAt": "2026-07-21T12:00:00.000Z"}
//	  }]},
//	  "meta": {"values": {"mutations.0.values.createdAt": ["Date"]}, "v": 1}
//	}
//
// A mutation has its members in this order: op, schema, namespace (not when empty),
// table, externalId, versionstamp, then values (create) or set (update), then
// checkVersion (update and delete, not when nil). A reader must accept any order, because
// databases reorder the members of objects.
//
// Events of the application are in the member events, which is absent if there are none.
// An event has its members in this order: topic, key (not when empty), versionstamp,
// payload:
//
//	"events": [{"topic": "post.published", "key": "p1", "versionstamp": "000000000000000000070001", "payload": {"words": 840}}]
//
// The payload of an event is plain JSON, and nothing in it is tagged. The versionstamps of
// mutations and events have user versions from 0, in the order in which both were recorded.
// Readers before version 0.2.0 ignore events. An entry that has only events has an empty
// array of mutations.
//
// meta.values has a tag for each path that needs one. A path consists of the keys and
// indexes from the payload down, joined by dots. Within a key, a dot is written \. and a
// backslash \\. meta.v is 1.
//
// # Values
//
//	Go                        JSON                          tag
//	nil, or a nil below       null
//	bool                      true, false
//	string                    string
//	integers to ±(2^53−1)     number without a fraction
//	larger integers           string of decimal digits      ["bigint"]
//	*big.Int                  string of decimal digits      ["bigint"]
//	float32, float64          number with a fraction or an exponent
//	NaN, ±Inf, −0             "NaN", "Infinity",            ["number"]
//	                          "-Infinity", "-0"
//	time.Time                 "2006-01-02T15:04:05.000Z"    ["Date"]
//	[]byte                    array of numbers              [["typed-array","Uint8Array"]]
//	json.RawMessage           the JSON itself               none, or {}
//	Placeholder               {"__ref": "<op>.<column>"}
//
// Times are in UTC, in the years 0 to 9999. They have six fractional digits if they have
// microseconds, otherwise three. Finer fractions are truncated. A JavaScript Date drops
// the microseconds.
//
// A float always has a fraction or an exponent: 3 is written 3.0, so that it is decoded
// as a float64 and not as an int64. PostgreSQL's jsonb keeps the fraction but expands the
// exponent: 1e+21 becomes an integer. An integer of that size is always a tagged string.
// So a number without a fraction that an int64 cannot hold is a float64 too. Other
// writers of this form, such as superjson itself, write 3 for both; a consumer of their
// entries must use the column's type.
//
// A json.RawMessage must pass the checks for JSON input, except the size limit. It is
// embedded unchanged, so its numbers stay exact, and nothing in it is tagged. (A
// JavaScript consumer rounds its large numbers as JSON.parse does, and superjson drops
// keys named __proto__.) The tag {} means "use this value unchanged": superjson ignores
// it. It marks JSON that would otherwise not be decoded as a json.RawMessage: a scalar,
// or an object that looks like the placeholder of its own column.
//
// The payload nests a JSON column five levels deeper than the column itself, so it may
// exceed MariaDB's depth limit for JSON. Therefore the column of the payload must not be
// one that MariaDB checks as JSON.
//
// # Placeholders
//
// A placeholder always refers to its own position. {"__ref": "2.authorId"} is the value
// of the column authorId of the mutation with index 2, and its external id is in the
// reference map of the entry under "2.authorId". The same object in any other position,
// or with the tag {}, is the user's JSON and has no special meaning.
func Encode(p Payload) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	e := encoder{buf: make([]byte, 0, 64+mutationSize*p.Len())}
	e.raw(`{"json":{"version":1,"mutations":[`)
	for i, m := range p.Mutations {
		if i > 0 {
			e.raw(",")
		}
		if err := e.mutation(i, m); err != nil {
			return nil, err
		}
	}
	e.raw("]")
	if err := e.events(p.Events); err != nil {
		return nil, err
	}
	e.raw("}")
	e.meta()
	e.raw("}")
	return e.buf, nil
}

// Decode decodes the stored form of a payload, as Encode documents it, and replaces
// placeholders with the external ids in refs. It returns a *fault.Invalid if refs lacks a
// placeholder, or if the input is not a payload of version 1. Decode never returns a
// partial payload.
//
// The decoded values are nil, bool, string, int64, float64, time.Time (in UTC), []byte,
// json.RawMessage, and *big.Int for integers that an int64 cannot hold. So an integer is
// exact but may have another type than the encoded one. JSON has no white space around
// it. A create or an update without columns has an empty map.
func Decode(payload []byte, refs RefMap) (Payload, error) {
	stored, err := readStored(payload)
	if err != nil {
		return Payload{}, err
	}
	d := decoder{tags: stored.Meta.Values, refs: refs}
	p := Payload{Version: stored.JSON.Version, Mutations: make([]Mutation, 0, len(stored.JSON.Mutations))}
	for i, m := range stored.JSON.Mutations {
		decoded, err := d.mutation(i, m)
		if err != nil {
			return Payload{}, err
		}
		p.Mutations = append(p.Mutations, decoded)
	}
	for i, s := range stored.JSON.Events {
		event, err := readEvent(i, s)
		if err != nil {
			return Payload{}, err
		}
		p.Events = append(p.Events, event)
	}
	if err := d.finish(); err != nil {
		return Payload{}, err
	}
	if err := p.check(); err != nil {
		return Payload{}, err
	}
	return p, nil
}

// The tags, as they are in meta.values.
const (
	tagDate   = `["Date"]`
	tagBigint = `["bigint"]`
	tagNumber = `["number"]`
	tagBytes  = `[["typed-array","Uint8Array"]]`
	tagAsIs   = `{}`

	// maxSafe is the largest integer up to which a JavaScript number is exact.
	maxSafe = 1<<53 - 1
	// maxBigint is the maximum length of an integer in characters. It is bounded because
	// parsing takes more than linear time.
	maxBigint = 4096

	// mutationSize is the estimated size in bytes of a mutation of a few columns with its
	// tags. The encoder allocates its buffer accordingly.
	mutationSize = 384

	milliseconds = "2006-01-02T15:04:05.000Z"
	microseconds = "2006-01-02T15:04:05.000000Z"
)

var pathEscaper = strings.NewReplacer(`\`, `\\`, `.`, `\.`)

func mutationPath(op int) string { return "mutations." + strconv.Itoa(op) }

// columnPath is the path of a column in meta.values.
func columnPath(op int, member, column string) string {
	return mutationPath(op) + "." + member + "." + pathEscaper.Replace(column)
}
