package interleave

import (
	"os"
	"regexp"
	"strings"
)

// footprint says what a step of one session may have to do with a step of another.
//
// Two steps that have nothing to do with each other have the same effect in either order,
// and of schedules that differ in such orders only, one is run. This is a reduction by
// sleep sets: no outcome is lost. A plain read sees what is committed, takes no lock and
// waits for none. So it commutes with every statement of another session but a COMMIT.
type footprint int

const (
	// reads are plain reads inside a transaction.
	reads footprint = iota
	// writes are other statements inside a transaction, that stays open.
	writes
	// anything is all else: a COMMIT, a rollback, or what is not known.
	anything
)

// independent reports whether two steps of different sessions commute.
func independent(a, b footprint) bool {
	return a == reads && b != anything || b == reads && a != anything
}

var (
	ends = regexp.MustCompile(`(?i)^\s*(commit|rollback|end|abort|begin|start)\b`)
	// active are the words of statements that lock or change, or look past the
	// transactions. Functions of a schema may do all of that.
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

// complete reports whether schedules are run that differ from others in the order of
// independent steps only: in `make soak`, which so tests the reduction.
func complete() bool {
	soak := os.Getenv("PERDURE_SOAK")
	return soak != "" && soak != "1"
}
