package sqldb

import "errors"

// IsUnavailable reports whether the database failed for a reason that is not in the
// statements: the connection was lost, the disk is full, the server is stopping, or the
// response to COMMIT did not arrive. Conflicts with other transactions and their locks
// do not count.
func IsUnavailable(err error) bool {
	var uncertain *Uncertain
	if errors.As(err, &uncertain) {
		return true
	}
	if IsLocked(err) || IsCertification(err) {
		return false
	}
	var server interface{ SQLState() string }
	if errors.As(err, &server) && len(server.SQLState()) >= 2 {
		const canceled, readOnly = "57014", "25006"
		switch server.SQLState()[:2] {
		case "08", "53", "57", "58": // connection, resources, operator, system
			return server.SQLState() != canceled
		}
		return server.SQLState() == readOnly
	}
	if code, _, ok := FileCode(err); ok {
		const readOnly, ioError, full, cannotOpen = 8, 10, 13, 14 // SQLite's primary codes
		switch code & 0xff {
		case readOnly, ioError, full, cannotOpen:
			return true
		}
		return false
	}
	return IsTransient(err) // a lost connection
}
