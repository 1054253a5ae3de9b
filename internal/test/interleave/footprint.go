package interleave

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// footprint describes how a step of one session may depend on a step of another.
//
// Two independent steps have the same effect in either order. Of the schedules that differ
// only in such orders, one is run. This is a reduction by sleep sets: no outcome is lost. A
// plain read sees committed data, takes no lock and waits for none. So it commutes with
// every statement of another session except a COMMIT. A write inside a transaction that stays
// open is not visible to others. It only takes locks, so it commutes with writes to other
// tables.
type footprint struct {
	effect effect
	// tables are the tables that a write names, each between bars. "" stands for any table.
	tables string
}

// effect is the kind of a step. The least dependent is the first.
type effect int

const (
	isRead  effect = iota // plain reads inside a transaction
	isWrite               // other statements inside a transaction that stays open
	isOther               // all else: a COMMIT, a rollback, or an unknown statement
)

// Footprints of which nothing more is known.
var (
	reads    = footprint{effect: isRead}
	writes   = footprint{effect: isWrite}
	anything = footprint{effect: isOther}
)

// independent reports whether two steps of different sessions commute.
func independent(a, b footprint) bool {
	switch {
	case a.effect == isOther || b.effect == isOther:
		return false
	case a.effect == isRead || b.effect == isRead:
		return true
	case a.tables == "" || b.tables == "":
		return false
	}
	for _, table := range strings.Split(strings.Trim(a.tables, "|"), "|") {
		if strings.Contains(b.tables, "|"+table+"|") {
			return false
		}
	}
	return true
}

// and returns the footprint of two steps, or parts of a step, that run one after the other.
func (f footprint) and(g footprint) footprint {
	switch {
	case f.effect == isWrite && g.effect == isWrite && (f.tables == "" || g.tables == ""):
		return writes
	case f.effect == isWrite && g.effect == isWrite:
		return footprint{isWrite, f.tables + g.tables}
	case f.effect >= g.effect:
		return f
	}
	return g
}

// number stands for the numbers of transactions, as if they were a table.
const number = "|number of the transaction|"

// first returns the footprint of a write that is the first one of its transaction: then
// PostgreSQL numbers the transaction, and the numbers of two transactions have an order.
func (f footprint) first() footprint {
	if f.effect == isWrite && f.tables != "" {
		f.tables += number
	}
	return f
}

var (
	ends = regexp.MustCompile(`(?i)^\s*(commit|rollback|end|abort|begin|start)\b`)
	// active are the words of statements that lock or change, or read past the transactions.
	// Functions of a schema may do all of that.
	active = regexp.MustCompile(`(?i)\b(for\s+(update|share|no\s+key|key)|lock|insert|update|delete|merge|truncate|call|do|execute|nextval|setval|notify|\w*_?lock|pg_\w+|txid_\w+|xmin)\b|\b(internal|queues|comms|perdure)\.\w+\s*\(`)
)

var (
	// named are the tables of a statement: those with a schema, and names after words that a
	// table follows. Names that are no tables only make statements dependent.
	named = regexp.MustCompile(`(?i)\b(?:perdure|queues|comms|internal)\.\w+|\b(?:from|join|into|update|using|only|table)\s+([\w.]+)`)
	// called are functions of a schema, after target has removed the tables of inserts.
	called = regexp.MustCompile(`(?i)\b(perdure|queues|comms|internal)\.\w+\s*\(`)
	target = regexp.MustCompile(`(?i)\binto\s+[\w.]+`)
	// shared are words of statements whose locks are not those of tables.
	shared = regexp.MustCompile(`(?i)\b(lock|call|do|execute|nextval|setval|notify|\w*_lock\w*|pg_\w+|txid_\w+)\b`)
	// snapshot are functions that show which transactions are numbered, and own the one that
	// shows only the number of its own transaction.
	snapshot = regexp.MustCompile(`(?i)\bpg_(current_snapshot|snapshot_xmax|snapshot_xmin|snapshot_xip)\b`)
	own      = regexp.MustCompile(`(?i)\bpg_current_xact_id_if_assigned\(\)`)
	// setting is the part of an upsert that is no statement.
	setting = regexp.MustCompile(`(?i)\bdo\s+(update\s+set|nothing)\b|\bfor\s+(no\s+key\s+)?update(\s+of\s+\w+)?|\bskip\s+locked\b`)
	// noTable are words that follow the words of named, and are no tables.
	noTable = []string{"unnest", "lateral", "select", "set", "values", "generate_series", "coalesce", "greatest", "least"}
)

// footprintOf returns the footprint of a statement inside a transaction.
func footprintOf(text string) footprint {
	text = own.ReplaceAllString(text, "0")
	start := strings.ToLower(strings.TrimSpace(text))
	switch {
	case ends.MatchString(text):
		return anything
	case (strings.HasPrefix(start, "select") || strings.HasPrefix(start, "with")) && !active.MatchString(text):
		return reads
	}
	return footprint{isWrite, tablesOf(text)}
}

// tablesOf returns the tables that a write may lock rows of, or "" if that is not known.
func tablesOf(text string) string {
	text = setting.ReplaceAllString(text, " ")
	var all strings.Builder
	if snapshot.MatchString(text) {
		all.WriteString(number)
		text = snapshot.ReplaceAllString(text, " ")
	}
	if shared.MatchString(text) || called.MatchString(target.ReplaceAllString(text, " ")) {
		return ""
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(found[0])
		if found[1] != "" {
			name = strings.ToLower(found[1])
		}
		switch schema, _, qualified := strings.Cut(name, "."); {
		case slices.Contains(noTable, name):
		case qualified && schema != "perdure": // their tables have foreign keys and triggers
			return ""
		case name == "perdure.alarm_items", name == "perdure.alarms": // a trigger deletes attempts
			all.WriteString("|" + name + "||perdure.attempts|")
		default:
			all.WriteString("|" + name + "|")
		}
	}
	return all.String()
}

// complete reports whether schedules that differ only in the order of independent steps are
// also run. `make soak` does so, and thereby tests the reduction.
func complete() bool {
	soak := os.Getenv("PERDURE_SOAK")
	return soak != "" && soak != "1"
}
