package store

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// PrunedThrough is the setting that holds, in hex, the last stamp that
// retention has removed from the outbox.
const PrunedThrough = "outbox.pruned_through"

// GetSetting returns the statement that reads a setting, if it is set.
func (s *Store) GetSetting(name string, found func(value string)) sqldb.Stmt {
	return oneColumn(s.stmt("SettingGet", name), found)
}

// LockSetting returns the statement that locks a setting until the transaction ends. The
// setting must exist.
func (s *Store) LockSetting(name string) sqldb.Stmt {
	return needsOne(oneColumn(s.stmt("SettingLock", name), func(string) {}), fmt.Errorf("setting %s is missing", name))
}

// SetSetting returns the statement that sets a setting, which must exist.
func (s *Store) SetSetting(name, value string) sqldb.Stmt {
	return needsOne(s.stmt("SettingUpdate", value, name), fmt.Errorf("setting %s is missing", name))
}

// PutSetting returns the statements that set a setting, even if it does not exist.
func (s *Store) PutSetting(name, value string) []sqldb.Stmt {
	return []sqldb.Stmt{s.stmt("SettingDelete", name), s.stmt("SettingInsert", name, value)}
}

// SetSchema returns the statements that record the description of a schema.
func (s *Store) SetSchema(name, description string, now time.Time) []sqldb.Stmt {
	return []sqldb.Stmt{s.stmt("SchemaDelete", name), s.stmt("SchemaInsert", name, description, now)}
}

// AddTable returns the statement that records that Perdure makes a described table.
func (s *Store) AddTable(schemaName, tableName string, now time.Time) sqldb.Stmt {
	return s.stmt("TableInsert", schemaName, tableName, now)
}

// Tables returns the statement that reads the described tables that Perdure has made.
func (s *Store) Tables(each func(schemaName, tableName string)) sqldb.Stmt {
	return twoColumns(s.stmt("TableList"), each)
}

// Schemas returns the statement that reads the recorded descriptions.
func (s *Store) Schemas(each func(name, description string) error) sqldb.Stmt {
	list := s.stmt("SchemaList")
	list.Row = func(scan sqldb.Scan) error {
		var name, description string
		if err := scan(&name, &description); err != nil {
			return err
		}
		return each(name, description)
	}
	return list
}
