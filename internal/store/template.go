package store

import (
	"regexp"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// A statement that differs between databases in only a few words is one text with marks:
//
//	{now ?1}          the time ?1, or the time of the server's clock if ?1 is null
//	{us x}            x microseconds, in the form that can be added to a time
//	{text x}          a cast of x, if the database needs it: also uuid, json, ...
//	{any uuid ?1}     is one of the values of the set ?1; MySQL has separate statements
//	{lock for update} the clause that locks rows, in PostgreSQL's form
//	{leased l h}      the lease l holds the item h
//	{suspect h}       a comparison with whether the item h is a suspect
//	{endless x}       whether the time x is infinite or no time
//	{paused fsm x ?1} whether the definition x is paused at the time ?1: also task, and lane for
//	                  the queue, the hook or the alarm of a lane
//	{parked x}        whether the definition x is paused by the clock of the server, for lists
var (
	nowMark     = regexp.MustCompile(`\{now (\?\d*)\}`)
	usMark      = regexp.MustCompile(`\{us ([^{}]+)\}`)
	castMark    = regexp.MustCompile(`\{(text|uuid|json|jsonb|bigint|integer|smallint|boolean|timestamptz|bytea|int) ([^{}]+)\}`)
	anyMark     = regexp.MustCompile(`\{any (\w+) (\?\d*)\}`)
	lockMark    = regexp.MustCompile(`(\s*)\{lock ([\w ]+?)( skip locked)?\}`)
	leaseMark   = regexp.MustCompile(`\{leased (\w+) (\w+)\}`)
	suspectMark = regexp.MustCompile(`\{suspect (\w+)\}`)
	endlessMark = regexp.MustCompile(`\{endless ([\w.]+)\}`)
	// numbered matches a numbered placeholder.
	numbered = regexp.MustCompile(`\?(\d+)`)
)

// writing is the text of a database for each mark.
type writing struct{ now, us, cast, any, lock, leased, suspect, endless string }

var writings = map[string]writing{
	sqldb.Postgres: {
		now: "coalesce($1::timestamptz, now())", us: "$1 * interval '1 microsecond'", cast: "$2::$1", any: "= any($2::$1[])", lock: "$1$2$3",
		leased: "$2.id = any($1.ids)", suspect: "= ($1.batch_limit is not null)", endless: "not isfinite($1)",
	},
	sqldb.SQLite: {
		now: "$1", us: "$1", cast: "$2", any: "in (select value->>0 from jsonb_each($2))",
		leased: "$2.id in (select value from json_each($1.ids))", suspect: "in (0, 1)", // so that the index is used
		endless: "$1 is not null and (typeof($1) <> 'integer' or $1 not between -62135596800000000 and 253402300799999999)",
	},
	sqldb.MySQL: {
		now: "coalesce(cast($1 as datetime(6)), utc_timestamp(6))", us: "interval $1 microsecond", cast: "$2", lock: "${1}for update$3",
		leased: "locate($2.id, $1.ids) > 0", suspect: "= case when $1.batch_limit is null then 0 else 1 end",
		endless: "($1 < '1000-01-01' or $1 >= '9999-12-31 23:59:59')",
	},
}

// unmarked replaces the marks of a text by the text of the database.
func unmarked(d sqldb.Dialect, text string) string {
	if strings.Contains(text, "{") {
		m := writings[d.Name]
		text = pauses(d, text)
		text = nowMark.ReplaceAllString(text, m.now)
		text = castMark.ReplaceAllString(text, m.cast)
		text = usMark.ReplaceAllString(text, m.us)
		text = anyMark.ReplaceAllString(text, m.any)
		text = lockMark.ReplaceAllString(text, m.lock)
		text = leaseMark.ReplaceAllString(text, m.leased)
		text = suspectMark.ReplaceAllString(text, m.suspect)
		text = endlessMark.ReplaceAllString(text, m.endless)
	}
	if d.HasSchemas() {
		text = numbered.ReplaceAllString(text, "$$$1")
	}
	return text
}
