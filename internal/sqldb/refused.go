package sqldb

import (
	"errors"

	"github.com/perdure/perdure/fault"
)

// Refused reports whether the database was reachable and rejected the data. All other
// errors, such as a full disk, a timeout or a lost response to COMMIT, are not caused by
// the data.
func Refused(err error) bool {
	var duplicate *fault.Duplicate
	var restricted *fault.Restricted
	var invalid *fault.Invalid
	switch {
	case IsUncertain(err):
		return false
	case errors.As(err, &duplicate), errors.As(err, &restricted), errors.As(err, &invalid):
		return true
	}
	var server interface{ SQLState() string }
	if !errors.As(err, &server) || len(server.SQLState()) < 2 {
		return false
	}
	switch server.SQLState()[:2] {
	case "22", "23", "54": // data exceptions, constraint violations, program limits
		return true
	}
	return false
}
