package sqldb

import (
	"errors"
	"reflect"
)

// ServerError is an error that a PostgreSQL server returned, in the types of pgx or
// lib/pq.
type ServerError struct {
	// State is the SQLSTATE.
	State string
	// Constraint is the name of the violated constraint, if any.
	Constraint string
	// Severity is ERROR, FATAL or PANIC, not translated; empty if it is not known.
	Severity string
}

// Server returns the error of a server in err's tree. Drivers are recognized by their
// methods and fields, so that no user gets a driver that he does not use.
func Server(err error) (ServerError, bool) {
	var e interface {
		error
		SQLState() string
	}
	if !errors.As(err, &e) {
		return ServerError{}, false
	}
	s := ServerError{State: e.SQLState(), Constraint: textField(e, "ConstraintName"), Severity: textField(e, "SeverityUnlocalized")}
	if s.Constraint == "" {
		s.Constraint = textField(e, "Constraint") // lib/pq
	}
	return s, true
}

// FileCode returns the extended result code of SQLite in err's tree. modernc.org/sqlite
// has a method for it, mattn/go-sqlite3 a field.
func FileCode(err error) (code int, message string, ok bool) {
	var method interface {
		error
		Code() int
	}
	if errors.As(err, &method) {
		return method.Code(), method.Error(), true
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if field := fieldOf(e, "ExtendedCode"); field.IsValid() && field.CanInt() {
			return int(field.Int()), e.Error(), true
		}
	}
	return 0, "", false
}

// mysqlNumber returns the number of an error of a MySQL or MariaDB server in err's tree. The
// driver has no method for it.
func mysqlNumber(err error) (number uint64, ok bool) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if field := fieldOf(e, "Number"); field.IsValid() && field.CanUint() {
			return field.Uint(), true
		}
	}
	return 0, false
}

func textField(v any, name string) string {
	if f := fieldOf(v, name); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

// fieldOf returns a field of a struct or of a pointer to one.
func fieldOf(v any, name string) reflect.Value {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		r = r.Elem()
	}
	if r.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return r.FieldByName(name)
}
