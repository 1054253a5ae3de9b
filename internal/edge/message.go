package edge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxMessage is the longest text that Message returns, in bytes.
const MaxMessage = 8 << 10

const ellipsis = "…"

// Message makes an error text safe to store and to show. It never rejects a text: an error
// that cannot be recorded would hide the failure that it describes. Bytes that are not
// UTF-8, and control characters other than newline and tab, become U+FFFD. A text longer
// than MaxMessage is cut at a character and ends in "…".
func Message(s string) string {
	cut := len(s) > MaxMessage
	if cut {
		s = s[:MaxMessage] // the rest is not needed
	}
	s = strings.Map(visible, strings.ToValidUTF8(s, "\uFFFD"))
	if !cut && len(s) <= MaxMessage {
		return s
	}
	return clip(s, MaxMessage-len(ellipsis)) + ellipsis
}

func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return utf8.RuneError
	}
	return r
}

// clip returns the longest prefix of s that has at most max bytes and ends at a character
// boundary.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}
