package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// model describes the state of a pool's databases before a test.
type model struct {
	admin    *sql.DB
	database string
	tables   []string
	filled   []string // the tables that have rows
	shape    string
}

// shapes is a query whose result changes with a column, an index or a constraint of the
// tables, or with the number of triggers, views or routines. The texts of checks and views,
// options of tables, and events are not compared: no test changes them.
const shapes = `
select concat_ws(' ',
 (select sum(crc32(concat_ws('|', table_name, column_name, ordinal_position, column_default, is_nullable, column_type, collation_name, extra, generation_expression)))
  from information_schema.columns where table_schema = ? and table_name in (%[1]s)),
 (select sum(crc32(concat_ws('|', table_name, index_name, non_unique, seq_in_index, column_name, sub_part, collation)))
  from information_schema.statistics where table_schema = ? and table_name in (%[1]s)),
 (select concat_ws(' ', count(*), sum(crc32(concat_ws('|', table_name, constraint_name, constraint_type))))
  from information_schema.table_constraints where table_schema = ? and table_name in (%[1]s)),
 (select count(*) from information_schema.triggers where event_object_schema = ?),
 (select count(*) from information_schema.tables where table_schema = ? and table_type <> 'BASE TABLE'),
 (select count(*) from information_schema.routines where routine_schema = ?))`

const tablesOf = "select table_name from information_schema.tables where table_schema = ? and table_type = 'BASE TABLE'"

// readModel reads the model of a database that was just prepared.
func readModel(ctx context.Context, admin *sql.DB, database string) (*model, error) {
	m := &model{admin: admin, database: database}
	var err error
	if m.tables, err = texts(ctx, admin, tablesOf, database); err != nil {
		return nil, err
	}
	if m.filled, err = m.touched(ctx, database); err != nil {
		return nil, err
	}
	m.shape, err = m.shapeOf(ctx, database)
	return m, err
}

func (m *model) shapeOf(ctx context.Context, database string) (string, error) {
	query := fmt.Sprintf(shapes, "'"+strings.Join(m.tables, "','")+"'")
	args := slices.Repeat([]any{database}, strings.Count(query, "?"))
	all, err := texts(ctx, m.admin, query, args...)
	return strings.Join(all, ""), err
}

// connected returns the databases that have a connection.
func (m *model) connected(ctx context.Context) ([]string, error) {
	return texts(ctx, m.admin, "select distinct db from information_schema.processlist where db is not null")
}

// restore empties a database and restores the rows of the model. It reports false if the
// tables differ from the model.
func (m *model) restore(ctx context.Context, database string) (bool, error) {
	shape, err := m.shapeOf(ctx, database)
	if err != nil || shape != m.shape {
		return false, err
	}
	statements, err := m.cleaning(ctx, database)
	if err != nil {
		return false, err
	}
	return true, inTurn(ctx, m.admin, statements)
}

// cleaning returns the statements that make a database equal to the model. Only tables that
// a test wrote to are emptied.
func (m *model) cleaning(ctx context.Context, database string) ([]string, error) {
	found, err := texts(ctx, m.admin, tablesOf, database)
	if err != nil {
		return nil, err
	}
	touched, err := m.touched(ctx, database)
	if err != nil {
		return nil, err
	}
	statements := []string{"set foreign_key_checks = 0"}
	for _, table := range found {
		if !slices.Contains(m.tables, table) {
			statements = append(statements, "drop table "+qualified(database, table))
		}
	}
	for _, table := range touched {
		if !slices.Contains(m.filled, table) {
			statements = append(statements, "truncate table "+qualified(database, table))
		}
	}
	for _, table := range m.filled { // they have few rows: this is cheaper than truncate
		statements = append(statements, "delete from "+qualified(database, table), fmt.Sprintf("insert into %s select * from %s",
			qualified(database, table), qualified(m.database, table)))
	}
	return append(statements, "set foreign_key_checks = 1"), nil
}

// touched returns the tables of the model that have rows in a database, or whose
// auto_increment counter has advanced.
func (m *model) touched(ctx context.Context, database string) ([]string, error) {
	parts := []string{"select table_name from information_schema.tables where auto_increment > 1 and table_schema = ? and table_name in ('" + strings.Join(m.tables, "','") + "')"}
	for _, table := range m.tables {
		parts = append(parts, fmt.Sprintf("(select '%s' from %s limit 1)", table, qualified(database, table)))
	}
	return texts(ctx, m.admin, strings.Join(parts, " union "), database)
}

func qualified(database, table string) string { return "`" + database + "`.`" + table + "`" }

// inTurn executes statements on one connection.
func inTurn(ctx context.Context, db *sql.DB, statements []string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// texts returns the only column of a query's rows.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
