package outbox

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/perdure/perdure/fault"
)

// Stamp is the position of an entry, or of one of its mutations, in the total order of
// commits. It has the form of a FoundationDB versionstamp: ten bytes for the transaction
// and two for the position within it, all big-endian, so that the order of the bytes is
// the order of the commits.
//
// The ten bytes are a 16-bit incarnation, which grows when a restore or a failover may
// have lost commits, and a 64-bit counter. The first entry has counter 1, so the zero
// Stamp means "before everything". The entry itself has user version 0, and so does its
// first mutation. Its second mutation has 1.
type Stamp [12]byte

// NewStamp returns the stamp with the given parts.
func NewStamp(incarnation uint16, counter uint64, user uint16) Stamp {
	var s Stamp
	binary.BigEndian.PutUint16(s[0:], incarnation)
	binary.BigEndian.PutUint64(s[2:], counter)
	binary.BigEndian.PutUint16(s[10:], user)
	return s
}

// ParseStamp parses the 24 hexadecimal digits that String returns; upper case is
// accepted. The empty string is the zero Stamp, so that a cursor that was never set means
// "from the start". For any other text, ParseStamp returns a *fault.Invalid for "cursor".
func ParseStamp(text string) (Stamp, error) {
	var s Stamp
	if text == "" {
		return s, nil
	}
	if len(text) != hex.EncodedLen(len(s)) {
		return Stamp{}, malformed()
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return Stamp{}, malformed()
	}
	return s, nil
}

func malformed() error {
	return fault.Invalidf("cursor", "must be a stamp of 24 hexadecimal digits")
}

// Incarnation returns the first two bytes as a number.
func (s Stamp) Incarnation() uint16 { return binary.BigEndian.Uint16(s[0:]) }

// Counter returns the eight bytes after the incarnation as a number.
func (s Stamp) Counter() uint64 { return binary.BigEndian.Uint64(s[2:]) }

// User returns the user version, the last two bytes as a number.
func (s Stamp) User() uint16 { return binary.BigEndian.Uint16(s[10:]) }

// At returns the stamp of the same entry with another user version.
func (s Stamp) At(user uint16) Stamp {
	binary.BigEndian.PutUint16(s[10:], user)
	return s
}

// Compare returns -1 if s comes before other, 0 if they are equal, and +1 if s comes
// after other.
func (s Stamp) Compare(other Stamp) int { return bytes.Compare(s[:], other[:]) }

// IsZero reports whether s means "before everything".
func (s Stamp) IsZero() bool { return s == Stamp{} }

// String returns 24 lowercase hexadecimal digits. They sort in the order of the stamps.
func (s Stamp) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the result of String.
func (s Stamp) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the forms that ParseStamp accepts.
func (s *Stamp) UnmarshalText(text []byte) error {
	parsed, err := ParseStamp(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Value returns the 12 bytes for a binary column.
func (s Stamp) Value() (driver.Value, error) { return s[:], nil }

// Scan sets the stamp from the 12 bytes of a binary column.
func (s *Stamp) Scan(src any) error {
	raw, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("scan stamp: got %T, want 12 bytes", src)
	}
	if len(raw) != len(s) {
		return fmt.Errorf("scan stamp: got %d bytes, want 12", len(raw))
	}
	copy(s[:], raw)
	return nil
}
