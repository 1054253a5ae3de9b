package store

import "github.com/perdure/perdure/internal/sqldb"

// read lets a statement pass each of its rows to found. columns returns where the values
// of a row go, in their order.
func read[T any](stmt sqldb.Stmt, found func(T), columns func(*T) []any) sqldb.Stmt {
	stmt.Row = readRow(found, columns)
	return stmt
}

// readRow returns the function of read for one row. found is not called for a row that
// cannot be read.
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

// oneColumn is read for rows of one value.
func oneColumn[A any](stmt sqldb.Stmt, found func(A)) sqldb.Stmt {
	return read(stmt, found, func(a *A) []any { return []any{a} })
}

// twoColumns is read for rows of two values.
func twoColumns[A, B any](stmt sqldb.Stmt, found func(A, B)) sqldb.Stmt {
	type row struct {
		a A
		b B
	}
	return read(stmt, func(r row) { found(r.a, r.b) }, func(r *row) []any { return []any{&r.a, &r.b} })
}

// threeColumns is read for rows of three values.
func threeColumns[A, B, C any](stmt sqldb.Stmt, found func(A, B, C)) sqldb.Stmt {
	type row struct {
		a A
		b B
		c C
	}
	return read(stmt, func(r row) { found(r.a, r.b, r.c) }, func(r *row) []any { return []any{&r.a, &r.b, &r.c} })
}

// withRow lets row read each of the rows of a statement.
func withRow(stmt sqldb.Stmt, row func(sqldb.Scan) error) sqldb.Stmt {
	stmt.Row = row
	return stmt
}

// needsOne lets a statement fail with otherwise if it finds or changes no row.
func needsOne(stmt sqldb.Stmt, otherwise error) sqldb.Stmt {
	stmt.Done = sqldb.One(otherwise)
	return stmt
}

// changed lets did learn whether a statement has changed its row.
func changed(stmt sqldb.Stmt, did *bool) sqldb.Stmt {
	stmt.Done = func(rows int64) error {
		*did = rows == 1
		return nil
	}
	return stmt
}
