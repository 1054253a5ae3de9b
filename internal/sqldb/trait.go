package sqldb

// The methods of this file describe how databases differ. No other code compares the names
// of dialects.

// HasFunctions reports whether tasks are run by functions in the database, for a worker
// with a separate role.
func (d Dialect) HasFunctions() bool { return d.Name == Postgres }

// HasSchemas reports whether a namespace is a schema. Otherwise it is a prefix of table
// names.
func (d Dialect) HasSchemas() bool { return d.Name == Postgres }

// HasArrays reports whether an argument can be an array. Otherwise it is JSON.
func (d Dialect) HasArrays() bool { return d.Name == Postgres }

// HasPartialIndexes reports whether an index can have a condition. Otherwise the first
// column of the index has the result of the condition.
func (d Dialect) HasPartialIndexes() bool { return d.Name != MySQL }

// ChainsWrites reports whether one statement can change several tables. Otherwise its parts
// are separate statements.
func (d Dialect) ChainsWrites() bool { return d.Name == Postgres }

// NumbersPlaceholders reports whether a placeholder can name its value by number.
func (d Dialect) NumbersPlaceholders() bool { return d.Name != MySQL }

// PlansByValue reports whether a statement is planned again for each value of a limit that
// is a bare placeholder.
func (d Dialect) PlansByValue() bool { return d.Name == SQLite }

// HasRowLocations reports whether a statement can address a locked row by its location,
// which is faster than by its key.
func (d Dialect) HasRowLocations() bool { return d.Name == Postgres }

// CastUUID returns the cast of a placeholder whose value is compared with a UUID.
func (d Dialect) CastUUID() string {
	if d.Name == Postgres {
		return "::uuid"
	}
	return ""
}

// Contains returns the condition that a column contains the text of a placeholder.
func (d Dialect) Contains(column string) string {
	if d.Name == Postgres {
		return "position(? in " + column + ") > 0"
	}
	return "instr(" + column + ", ?) > 0"
}

// Bool returns a boolean in the form in which a column is compared with it.
func (d Dialect) Bool(b bool) any {
	switch {
	case d.Name != SQLite:
		return b
	case b:
		return 1
	}
	return 0
}

// SkipLocked returns the clause that skips rows that other transactions have locked. SQLite
// has no row locks.
func (d Dialect) SkipLocked() string {
	if d.Name == SQLite {
		return ""
	}
	return " skip locked"
}

// AbortsTransactions reports whether the server aborts a transaction after any error of a
// statement.
func (d Dialect) AbortsTransactions() bool { return d.Name == Postgres }

// OneWriter reports whether the database has one writer instead of row locks.
func (d Dialect) OneWriter() bool { return d.Name == SQLite }

// Now returns the expression for the current time in the form that columns store.
func (d Dialect) Now() string {
	switch d.Name {
	case Postgres:
		return "now()"
	case MySQL:
		return "utc_timestamp(6)"
	}
	return "cast(unixepoch('subsec') * 1000000 as integer)"
}

// LogPosition returns the query for the number of bytes that the server has written to its
// log, or the empty string if that is not known.
func (d Dialect) LogPosition() string {
	if d.Name == Postgres {
		return "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8"
	}
	return ""
}
