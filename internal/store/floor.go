package store

import (
	"regexp"
	"strings"
)

// While another session of PostgreSQL holds an old snapshot, deleted rows stay in the indexes. A
// look that begins at the start of an index would walk over all rows that were ever claimed. So a
// look begins at a floor, below which no row is left.
//
// A row may appear below the floor later: its transaction was open while the floor was raised,
// or its due time lies in the past. Such a row is found by the transaction that added it: rows
// have its number, and a floor has the snapshot with which it was raised. What that snapshot did
// not see has arrived since. Raising the floor again turns these rows into pins, which looks
// read by their keys. No clock decides, and nothing has to be announced.

// source is a table with floors: its name, the columns of its order, its levels, the condition
// for the rows w of a level l, the same in a form that only the index of arrivals can serve, and
// the condition for rows to which the floor is raised.
type source struct{ table, at, id, levels, lane, arrived, due string }

// sources are the tables with floors, by their names.
var sources = map[string]source{
	"ready": {
		table: "ready", at: "due_at", id: "id", levels: "(-1::smallint), (0::smallint), (1::smallint)",
		lane:    "w.queue = l.queue and w.suspect = false and w.priority = l.priority",
		arrived: `w.queue = l.queue collate "C" and w.suspect is not true and w.priority + 0 = l.priority`, due: " and w.due_at <= asked.now",
	},
	"leases": {table: "leases", at: "expires_at", id: "token", levels: "(0::smallint)", lane: "w.queue = l.queue", arrived: `w.queue = l.queue collate "C"`},
}

func (s source) fill(text string) string {
	return strings.NewReplacer("{source}", s.table, "{at}", s.at, "{id}", s.id, "{levels}", s.levels, "{lane}", s.lane, "{arrived}", s.arrived, "{due}", s.due).Replace(text)
}

// floorMark matches the marks of floors:
//
//	{raise ready array[$1]}    the queries that raise the floors of these lanes to those in raised
//	{floor ready}              the query level: the floors of the lanes in the query asked
//	{floor leases asked named} the same with other names
//	{first ready Hook}         the times of the first rows of a level l that Hook can open
var floorMark = regexp.MustCompile(`\{(raise|floor|first) (ready|leases)(?: ([\w$:\[\]]+))?(?: (\w+))?\}`)

// withFloors replaces the marks of floors in a text.
func withFloors(text string, texts map[string]string) string {
	return floorMark.ReplaceAllStringFunc(text, func(mark string) string {
		parts := floorMark.FindStringSubmatch(mark)
		from := sources[parts[2]]
		level, rows := from.fill(texts["Floor.Level"]), ""
		switch parts[1] {
		case "raise":
			rows = strings.ReplaceAll(texts["Floor.Asked"], "{lanes}", parts[3]) + ", " + level + ", " + texts["Floor.Raise"]
		case "floor":
			if parts[3] != "" {
				level = strings.NewReplacer("level as ", parts[4]+" as ", "asked", parts[3]).Replace(level)
			}
			return level
		case "first":
			rows = texts["Floor.First"]
		}
		condition := ""
		if parts[1] == "first" && parts[3] != "" {
			condition = "{openable " + parts[3] + " w.id}"
		}
		return strings.ReplaceAll(from.fill(strings.ReplaceAll(rows, "{below {source}}", texts["Floor.Below"])), "{openable}", condition)
	})
}
