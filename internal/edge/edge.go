// Package edge checks every input value, before anything is written and equally for all
// databases.
//
// The databases treat bad input differently: one rejects it, another changes it, a third
// truncates it. A value that passes these checks is stored by all of them without a change
// of meaning. A unit of work that is accepted on one database is therefore accepted on
// every other. Each rejection is a *fault.Invalid that has the name of the field.
package edge

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/fault"
)

const (
	// MaxName is the longest name in bytes.
	MaxName = 128
	// MaxKey is the longest key in bytes. Together with a second column, it still fits
	// every database's index entry (PostgreSQL: 2,704 bytes).
	MaxKey = 512
	// MaxIdentifier is the longest SQL identifier in bytes. It leaves room for Perdure's
	// prefixes and suffixes below PostgreSQL's limit of 63.
	MaxIdentifier = 48
	// MaxDelay is the longest delay: 100 years.
	MaxDelay = 36525 * 24 * time.Hour
)

// Text rejects text that is not valid UTF-8, contains NUL or is longer than max bytes. The
// empty text passes.
func Text(field, s string, max int) error {
	if len(s) > max {
		return fault.Invalidf(field, "must be at most %d bytes", max)
	}
	if !utf8.ValidString(s) {
		return fault.Invalidf(field, "must be valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return fault.Invalidf(field, "must not contain a NUL character")
	}
	return nil
}

// Name rejects invalid names of hooks, queues and definitions. A name has 1 to MaxName
// bytes of printable characters, with no space at either end. Invisible characters are not
// printable, which makes it less likely that two different names look equal.
func Name(field, s string) error {
	if s == "" {
		return fault.Invalidf(field, "must not be empty")
	}
	if err := Text(field, s, MaxName); err != nil {
		return err
	}
	if strings.IndexFunc(s, unprintable) >= 0 {
		return fault.Invalidf(field, "must contain only printable characters")
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return fault.Invalidf(field, "must not start or end with a space")
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Key rejects invalid idempotency keys and unique keys. A key has 1 to MaxKey bytes of
// text.
func Key(field, s string) error {
	if s == "" {
		return fault.Invalidf(field, "must not be empty")
	}
	return Text(field, s, MaxKey)
}

// Identifier rejects invalid names of a user's tables, columns and schemas. A name must
// match ^[A-Za-z][A-Za-z0-9_]{0,47}$. Identifier also rejects names that a JavaScript
// consumer cannot use as a key of an object, because column names become keys of outbox
// payloads.
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
		return fault.Invalidf(field, "must not be a name that JavaScript reserves, got %s", s)
	}
	return nil
}

// Reserved reports whether the key s has a special meaning in a JavaScript object, so that
// it cannot hold a value.
func Reserved(s string) bool {
	return s == "__proto__" || s == "constructor" || s == "prototype"
}

func badIdentifier(field string) error {
	return fault.Invalidf(field, "must be a letter followed by up to %d letters, digits or underscores", MaxIdentifier-1)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

// Delay rejects a negative delay and a delay longer than MaxDelay.
func Delay(field string, d time.Duration) error {
	if d < 0 {
		return fault.Invalidf(field, "must not be negative, got %v", d)
	}
	if d > MaxDelay {
		return fault.Invalidf(field, "must be at most 100 years")
	}
	return nil
}

// Time rejects a time outside the years 1 to 9998, which JSON and some databases cannot
// hold. The zero time passes: it means that there is no time.
func Time(field string, t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9998 {
		return fault.Invalidf(field, "must be between the years 1 and 9998")
	}
	return nil
}

// Limit returns the number of rows that a caller requested: def if n is 0, or n if it is
// between 1 and max. Other values are rejected rather than clamped, because a caller that
// receives fewer rows than it requested assumes that these are all.
func Limit(field string, n, def, max int) (int, error) {
	if n == 0 {
		return def, nil
	}
	if n < 0 || n > max {
		return 0, fault.Invalidf(field, "must be between 1 and %d, got %d", max, n)
	}
	return n, nil
}

// OneOf rejects a value that is not one of allowed. The error lists the allowed values.
func OneOf[T ~string](field string, value T, allowed []T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	var list strings.Builder
	for i, a := range allowed {
		switch {
		case i > 0 && i == len(allowed)-1:
			list.WriteString(" or ")
		case i > 0:
			list.WriteString(", ")
		}
		list.WriteString(string(a))
	}
	return fault.Invalidf(field, "must be %s, got %q", list.String(), Message(string(value)))
}

// Version rejects invalid versions of definitions. A version is between 1 and the largest
// number of the column that stores it.
func Version(field string, v int) error {
	if v < 1 || v > math.MaxInt32 {
		return fault.Invalidf(field, "must be between 1 and %d, got %d", math.MaxInt32, v)
	}
	return nil
}
