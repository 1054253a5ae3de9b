package sqldb

import "errors"

// IsUnavailable reports whether the database failed for a reason that is not in the
// statements: the connection was lost, the disk is full, the server is stopping, or the
// response to COMMIT did not arrive. Conflicts with other transactions and their locks
// do not count.
func IsUnavailable(err error) bool {
	if IsUncertain(err) {
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
	if number, ok := mysqlNumber(err); ok {
		switch number {
		case 3, 20, 1021, 1026, 1030, 1037, 1041, 1114, 1180, // writing a file, disk full, out of memory
			1040, 1053, 1203, 1927, 4031, // too many connections, the server is stopping, the connection was killed
			1047, 1290, 1792, 1836: // not a part of the cluster, read-only
			return true
		}
		return false
	}
	return IsTransient(err) // a lost connection
}
