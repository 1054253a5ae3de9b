package audit

import (
	"strings"
	"unicode/utf8"
)

// maxReason is the longest reason, in bytes.
const maxReason = 1000

// Reason returns a reason as the audit log stores it: its first 1,000 bytes, as a storable
// text.
func Reason(text string) string {
	text = storable(text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "")
	}
	return text
}

// tidy makes the texts of an entry storable.
func (e *Entry) tidy() {
	e.Reason = Reason(e.Reason)
	for _, text := range []*string{
		&e.ID, &e.Action, &e.Kind, &e.Target, &e.Principal, &e.Label, &e.Role, &e.Via, &e.Address, &e.Request, &e.Input, &e.Before, &e.After,
	} {
		*text = storable(*text)
	}
}

// storable returns a text that every database stores and returns unchanged: valid UTF-8
// without NUL. Any other text would have another hash when it is read.
func storable(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}
