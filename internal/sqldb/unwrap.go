package sqldb

import (
	"database/sql"
	"reflect"
)

// Unwrap returns the *sql.Tx inside the transaction of a library, or conn itself if there
// is none. The libraries' own methods may rewrite placeholders (bun) or prepare and keep
// every statement (GORM), which the engine's statements do not need. The transactions of
// bun, sqlx and GORM's prepared statements have it in a field named Tx.
func Unwrap(conn StdConn) StdConn {
	for range maxWrapped {
		v := reflect.ValueOf(conn)
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			if _, ok := conn.(*sql.Tx); ok {
				return conn
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return conn
		}
		field := v.FieldByName("Tx")
		if !field.IsValid() || !field.CanInterface() {
			return conn
		}
		inner, ok := field.Interface().(StdConn)
		if !ok || IsNil(inner) {
			return conn
		}
		conn = inner
	}
	return conn
}

// maxWrapped is the maximum number of libraries around a transaction.
const maxWrapped = 4

// IsNil reports whether an interface is nil or contains a nil pointer.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
