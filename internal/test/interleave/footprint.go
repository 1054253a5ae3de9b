package interleave

import (
	"os"
	"regexp"
	"strings"
)

// footprint describes how a step of one session may depend on a step of another.
//
// Two independent steps have the same effect in either order. Of the schedules that differ
// only in such orders, one is run. This is a reduction by sleep sets: no outcome is lost. A
// plain read sees committed data, takes no lock and waits for none. So it commutes with
// every statement of another session except a COMMIT.
type footprint int

const (
	// reads are plain reads inside a transaction.
	reads footprint = iota
	// writes are other statements inside a transaction that stays open.
	writes
	// anything is all else: a COMMIT, a rollback, or an unknown statement.
	anything
)

// independent reports whether two steps of different sessions commute.
func independent(a, b footprint) bool {
	return a == reads && b != anything || b == reads && a != anything
}

var (
	ends = regexp.MustCompile(`(?i)^\s*(commit|rollback|end|abort|begin|start)\b`)
	// active are the words of statements that lock or change, or read past the transactions.
	// Functions of a schema may do all of that.
	active = regexp.MustCompile(`(?i)\b(for\s+(update|share|no\s+key|key)|lock|insert|update|delete|merge|truncate|call|do|execute|nextval|setval|notify|\w*_?lock|pg_\w+|txid_\w+|xmin)\b|\b(internal|queues|comms|perdure)\.\w+\s*\(`)
)

// footprintOf returns the footprint of a statement inside a transaction.
func footprintOf(text string) footprint {
	start := strings.ToLower(strings.TrimSpace(text))
	switch {
	case ends.MatchString(text):
		return anything
	case (strings.HasPrefix(start, "select") || strings.HasPrefix(start, "with")) && !active.MatchString(text):
		return reads
	}
	return writes
}

// complete reports whether schedules that differ only in the order of independent steps are
// also run. `make soak` does so, and thereby tests the reduction.
func complete() bool {
	soak := os.Getenv("PERDURE_SOAK")
	return soak != "" && soak != "1"
}
