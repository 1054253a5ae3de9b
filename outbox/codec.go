package outbox

import (
	"strconv"
	"strings"
)

// Encode returns the stored form of a payload. It refuses, as a *fault.Invalid,
// a payload that Decode would not give back. Equal payloads have equal bytes:
// columns and tags are sorted by name.
//
// # The form
//
// The form is that of superjson (wire version 1), so that a JavaScript consumer
// reads an entry with superjson.deserialize. It is a JSON object with a member
// "json", the payload, and a member "meta", which says which of the JSON values
// stand for something that JSON does not have. Without such values there is no
// "meta".
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
// A mutation has its members in this order: op, schema, namespace (not when
// empty), table, externalId, versionstamp, then values (create) or set (update),
// then checkVersion (update and delete, not when nil). A reader takes them in any
// order: databases reorder objects.
//
// meta.values has a tag for each path that needs one. A path is the keys and
// indexes from the payload down, joined by dots; within a key a dot is written
// \. and a backslash \\. meta.v is 1.
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
// Times are in UTC, in the years 0 to 9999. They have six digits after the second
// if they have microseconds, else three; what is finer is cut off. A JavaScript
// Date drops the microseconds when it reads them.
//
// A float always has a fraction or an exponent, 3 is written 3.0, and so it comes
// back as a float64 and not as an int64. PostgreSQL's jsonb keeps the fraction but
// writes the exponent out: 1e+21 becomes an integer. An integer of that size is
// always a tagged string, hence a number without a fraction that an int64 cannot
// hold is a float64 too. Another writer of this form, such as superjson itself,
// writes 3 for either; a consumer of its entries goes by the column's type.
//
// A json.RawMessage must pass the checks for JSON at the edge, but for its size.
// It is embedded as it is, so its numbers stay exact, and nothing in it is
// tagged. (A JavaScript consumer rounds its large numbers as JSON.parse does, and
// superjson drops keys named __proto__.) The tag {} tells "take this as it is":
// it asks superjson for nothing. It is on JSON that otherwise would not come back
// as a json.RawMessage: a scalar, or what could be taken for the placeholder of
// its own column.
//
// JSON of the depth that the edge allows stands five levels deep in here. So the
// column of the payload must not be one that MariaDB checks as JSON.
//
// # Placeholders
//
// A placeholder is always that of its own place: {"__ref": "2.authorId"} stands
// in the column authorId of the mutation with index 2, and its external id is in
// the reference map of the entry under "2.authorId". The same object in any other
// place, or with the tag {}, is a user's JSON and means nothing.
func Encode(p Payload) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	e := encoder{buf: make([]byte, 0, 64+mutationSize*len(p.Mutations))}
	e.raw(`{"json":{"version":1,"mutations":[`)
	for i, m := range p.Mutations {
		if i > 0 {
			e.raw(",")
		}
		if err := e.mutation(i, m); err != nil {
			return nil, err
		}
	}
	e.raw("]}")
	e.meta()
	e.raw("}")
	return e.buf, nil
}

// Decode reads the stored form of a payload, as Encode documents it, and puts
// the external ids of refs in the place of placeholders. A placeholder that refs
// does not have is refused, as is everything else that is not a payload of
// version 1: Decode never returns a part of one. Each refusal is a
// *fault.Invalid.
//
// Values come back as nil, bool, string, int64, float64, time.Time (in UTC),
// []byte, json.RawMessage, and *big.Int for integers that an int64 cannot hold.
// So an integer comes back exact but not in the type that it had, JSON comes
// back without white space around it, and a create or an update without columns
// comes back with an empty map.
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
	// maxBigint is the longest integer in characters. Reading one takes more
	// than linear time.
	maxBigint = 4096

	// mutationSize is how many bytes a mutation of a few columns takes, with
	// its tags: the encoder's first guess.
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
