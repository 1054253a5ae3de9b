// Package edge checks every value that enters, before anything is written and
// equally for all databases.
//
// The databases disagree about bad input: one refuses it, another changes it,
// a third cuts it short. What passes these checks is kept by all of them
// without a change of meaning, so a unit of work that is accepted on one
// database is accepted on every other. Each refusal is a *fault.Invalid that
// carries the field it was given.
package edge

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

const (
	// MaxName is the longest name in bytes.
	MaxName = 128
	// MaxKey is the longest key in bytes. With a second column beside it, it
	// still fits every database's index entry (PostgreSQL: 2,704 bytes).
	MaxKey = 512
	// MaxIdentifier is the longest SQL identifier in bytes. It leaves room for
	// our prefixes and suffixes below PostgreSQL's 63.
	MaxIdentifier = 48
	// MaxDelay is the longest delay: 100 years.
	MaxDelay = 36525 * 24 * time.Hour
)

// Text refuses text that is not valid UTF-8, contains NUL or is longer than
// max bytes. The empty text passes.
func Text(field, s string, max int) error {
	if len(s) > max {
		return fault.Invalidf(field, "is longer than %d bytes", max)
	}
	if !utf8.ValidString(s) {
		return fault.Invalidf(field, "is not valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return fault.Invalidf(field, "contains a NUL character")
	}
	return nil
}

// Name refuses what cannot name a hook, a queue or a machine: anything but 1 to
// MaxName bytes of printable characters with no space at either end. Invisible
// characters are not printable, so two names that look equal are equal more
// often.
func Name(field, s string) error {
	if s == "" {
		return fault.Invalidf(field, "is empty")
	}
	if err := Text(field, s, MaxName); err != nil {
		return err
	}
	if strings.IndexFunc(s, unprintable) >= 0 {
		return fault.Invalidf(field, "contains a character that is not printable")
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return fault.Invalidf(field, "begins or ends with a space")
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Key refuses what cannot be an idempotency key or a unique key: anything but
// 1 to MaxKey bytes of text.
func Key(field, s string) error {
	if s == "" {
		return fault.Invalidf(field, "is empty")
	}
	return Text(field, s, MaxKey)
}

// Identifier refuses what cannot name a table, a column or a schema of a user:
// anything but ^[A-Za-z][A-Za-z0-9_]{0,47}$. It also refuses the names that a
// JavaScript consumer cannot use as a key of an object, because column names
// become keys of outbox payloads.
func Identifier(field, s string) error {
	if s == "" || len(s) > MaxIdentifier || !letter(s[0]) {
		return badIdentifier(field)
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && c != '_' {
			return badIdentifier(field)
		}
	}
	if Reserved(s) {
		return fault.Invalidf(field, "is a name that JavaScript reserves: %s", s)
	}
	return nil
}

// Reserved reports whether a JavaScript object gives the key s a meaning of its
// own, so that it cannot hold a value of ours.
func Reserved(s string) bool {
	return s == "__proto__" || s == "constructor" || s == "prototype"
}

func badIdentifier(field string) error {
	return fault.Invalidf(field, "is not a letter followed by up to %d letters, digits or underscores", MaxIdentifier-1)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

// Delay refuses a negative delay and one longer than MaxDelay.
func Delay(field string, d time.Duration) error {
	if d < 0 {
		return fault.Invalidf(field, "is negative")
	}
	if d > MaxDelay {
		return fault.Invalidf(field, "is longer than 100 years")
	}
	return nil
}

// Time refuses a time outside the years 1 to 9998: not every database, and no
// JSON, holds it. The zero time passes: it is the absence of a time.
func Time(field string, t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9998 {
		return fault.Invalidf(field, "must be between the years 1 and 9998")
	}
	return nil
}

// Limit returns the number of rows that a caller asked for: def when n is 0, n
// when it is within 1 and max. Anything else is refused rather than clamped,
// because a caller that gets fewer rows than it asked for takes them for all.
func Limit(field string, n, def, max int) (int, error) {
	if n == 0 {
		return def, nil
	}
	if n < 0 || n > max {
		return 0, fault.Invalidf(field, "is not within 1 and %d", max)
	}
	return n, nil
}

// Version refuses what cannot be the version of a definition: anything but 1 to the
// greatest number of the column that stores it.
func Version(field string, v int) error {
	if v < 1 || v > math.MaxInt32 {
		return fault.Invalidf(field, "must be between 1 and %d, got %d", math.MaxInt32, v)
	}
	return nil
}
