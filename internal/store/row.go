package store

import "github.com/perdure/perdure/internal/sqldb"

// read makes a statement pass each of its rows to found. columns returns the scan destinations
// of a row, in order.
func read[T any](stmt sqldb.Stmt, found func(T), columns func(*T) []any) sqldb.Stmt {
	stmt.Row = readRow(found, columns)
	return stmt
}

// readRow returns the row function of read. found is not called for a row that cannot be
// scanned.
func readRow[T any](found func(T), columns func(*T) []any) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var row T
		if err := scan(columns(&row)...); err != nil {
			return err
		}
		found(row)
		return nil
	}
}

// oneColumn is read for rows with one column.
func oneColumn[A any](stmt sqldb.Stmt, found func(A)) sqldb.Stmt {
	return read(stmt, found, func(a *A) []any { return []any{a} })
}

// twoColumns is read for rows with two columns.
func twoColumns[A, B any](stmt sqldb.Stmt, found func(A, B)) sqldb.Stmt {
	type row struct {
		a A
		b B
	}
	return read(stmt, func(r row) { found(r.a, r.b) }, func(r *row) []any { return []any{&r.a, &r.b} })
}

// threeColumns is read for rows with three columns.
func threeColumns[A, B, C any](stmt sqldb.Stmt, found func(A, B, C)) sqldb.Stmt {
	type row struct {
		a A
		b B
		c C
	}
	return read(stmt, func(r row) { found(r.a, r.b, r.c) }, func(r *row) []any { return []any{&r.a, &r.b, &r.c} })
}

// withRow sets the function that reads each row of a statement.
func withRow(stmt sqldb.Stmt, row func(sqldb.Scan) error) sqldb.Stmt {
	stmt.Row = row
	return stmt
}

// needsOne makes a statement fail with otherwise if it finds or changes no row.
func needsOne(stmt sqldb.Stmt, otherwise error) sqldb.Stmt {
	stmt.Done = sqldb.One(otherwise)
	return stmt
}

// changed sets did to whether a statement changed its row.
func changed(stmt sqldb.Stmt, did *bool) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*did = rows == 1
		return nil
	}
	return stmt
}
