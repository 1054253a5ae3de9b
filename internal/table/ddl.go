package table

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// create returns the statement that creates the table with all its columns.
func (b Builder) create(t *schema.Table) string {
	lines := []string{b.identity(), b.q("id") + " " + b.stringType(schema.MaxID) + " not null unique"}
	for _, c := range t.Columns() {
		lines = append(lines, b.column(c))
	}
	lines = append(lines, b.q("_version")+" bigint not null default 0")
	for _, c := range t.Columns() {
		if c.Type() == schema.TypeRef {
			lines = append(lines, b.foreignKey(t, c))
		}
	}
	return "create table if not exists " + b.Name(t) + " (\n  " + strings.Join(lines, ",\n  ") + "\n)" + b.tableOptions()
}

// addColumn returns the statements that add a described column to a table.
func (b Builder) addColumn(t *schema.Table, c schema.Column) []string {
	add := "alter table " + b.Name(t) + " add column " + b.column(c)
	if c.Type() != schema.TypeRef {
		return []string{add}
	}
	if b.Dialect.Name == sqldb.SQLite {
		return []string{add + " references " + b.Name(c.Table()) + " (" + b.q("_id") + ")"}
	}
	return []string{add, "alter table " + b.Name(t) + " add " + b.foreignKey(t, c)}
}

// index returns the statement that creates an index.
func (b Builder) index(t *schema.Table, i schema.Index) string {
	kind := "index"
	if i.Unique {
		kind = "unique index"
	}
	columns := make([]string, len(i.Columns))
	for n, name := range i.Columns {
		columns[n] = b.q(name) + b.nulls(t, name, false)
	}
	return fmt.Sprintf("create %s %s on %s (%s)", kind, b.q(b.indexName(t, i)), b.Name(t), strings.Join(columns, ", "))
}

// maxIdentifier is PostgreSQL's limit, the shortest of the three.
const maxIdentifier = 63

// indexName is derived from what is indexed, so that a changed description is
// a new index.
func (b Builder) indexName(t *schema.Table, i schema.Index) string {
	suffix := "idx"
	if i.Unique {
		suffix = "key"
	}
	name := strings.Join(append(append([]string{t.Name()}, i.Columns...), suffix), "_")
	if b.Dialect.Name == sqldb.SQLite { // index names are global there
		name = t.Schema().Name() + "_" + name
	}
	return shorten(name)
}

func shorten(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return name[:maxIdentifier-17] + "_" + hex.EncodeToString(sum.Sum(nil))
}

func (b Builder) identity() string {
	switch b.Dialect.Name {
	case sqldb.Postgres:
		return b.q("_id") + " bigint generated always as identity primary key"
	case sqldb.MySQL:
		return b.q("_id") + " bigint not null auto_increment primary key"
	}
	// autoincrement: an internal id is never used again for another row
	return b.q("_id") + " integer primary key autoincrement"
}

func (b Builder) column(c schema.Column) string {
	line := b.q(c.Name()) + " " + b.columnType(c)
	if !c.IsOptional() {
		line += " not null"
	}
	if v, ok := c.StaticDefault(); ok && v != nil && c.Type() != schema.TypeRef {
		line += " default " + b.literal(c, v)
	}
	return line
}

func (b Builder) foreignKey(t *schema.Table, c schema.Column) string {
	name := shorten(t.Schema().Name() + "_" + t.Name() + "_" + c.Name() + "_fkey")
	return fmt.Sprintf("constraint %s foreign key (%s) references %s (%s)", b.q(name), b.q(c.Name()), b.Name(c.Table()), b.q("_id"))
}

var columnTypes = map[string]map[schema.Type]string{
	sqldb.Postgres: {
		schema.TypeText: "text", schema.TypeInt: "bigint", schema.TypeFloat: "double precision", schema.TypeBool: "boolean",
		schema.TypeTime: "timestamptz", schema.TypeJSON: "jsonb", schema.TypeBytes: "bytea", schema.TypeRef: "bigint",
	},
	sqldb.SQLite: {
		schema.TypeText: "text", schema.TypeInt: "integer", schema.TypeFloat: "real", schema.TypeBool: "integer",
		schema.TypeTime: "integer", schema.TypeJSON: "text", schema.TypeBytes: "blob", schema.TypeRef: "integer",
	},
	sqldb.MySQL: {
		schema.TypeText: "longtext", schema.TypeInt: "bigint", schema.TypeFloat: "double", schema.TypeBool: "tinyint(1)",
		schema.TypeTime: "datetime(6)", schema.TypeJSON: "longtext", schema.TypeBytes: "longblob", schema.TypeRef: "bigint",
	},
}

func (b Builder) columnType(c schema.Column) string {
	if c.Type() == schema.TypeString {
		return b.stringType(c.MaxLen())
	}
	return columnTypes[b.Dialect.Name][c.Type()]
}

// stringType leaves the limit to the edge where the database needs none for
// an index: a longer limit is then no migration.
func (b Builder) stringType(limit int) string {
	if b.Dialect.Name == sqldb.MySQL {
		return "varchar(" + strconv.Itoa(limit) + ")"
	}
	return "text"
}

func (b Builder) tableOptions() string {
	if b.Dialect.Name != sqldb.MySQL {
		return ""
	}
	return " engine=InnoDB default character set utf8mb4 collate " + b.Dialect.Collation
}

// literal writes a static default for existing rows. New rows get theirs from
// the engine, so that the outbox shows it.
func (b Builder) literal(c schema.Column, v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return b.boolean(v)
	case time.Time:
		return b.timeLiteral(v)
	case []byte:
		return b.bytesLiteral(v)
	case float64:
		return b.quoteText(strconv.FormatFloat(v, 'g', -1, 64))
	}
	text := b.quoteText(fmt.Sprintf("%s", v))
	if b.Dialect.Name == sqldb.MySQL && (c.Type() == schema.TypeText || c.Type() == schema.TypeJSON) {
		return "(" + text + ")" // MySQL takes an expression, not a literal, for long text
	}
	return text
}

func (b Builder) boolean(v bool) string {
	if b.Dialect.Name == sqldb.Postgres {
		return strconv.FormatBool(v)
	}
	if v {
		return "1"
	}
	return "0"
}

func (b Builder) timeLiteral(v time.Time) string {
	switch b.Dialect.Name {
	case sqldb.SQLite:
		return strconv.FormatInt(v.UnixMicro(), 10)
	case sqldb.Postgres:
		return b.quoteText(v.Format("2006-01-02 15:04:05.999999Z07:00"))
	}
	return b.quoteText(v.Format("2006-01-02 15:04:05.999999"))
}

func (b Builder) bytesLiteral(v []byte) string {
	if b.Dialect.Name == sqldb.Postgres {
		return `'\x` + hex.EncodeToString(v) + `'`
	}
	text := "x'" + hex.EncodeToString(v) + "'"
	if b.Dialect.Name == sqldb.MySQL {
		return "(" + text + ")"
	}
	return text
}

func (b Builder) quoteText(s string) string {
	if b.Dialect.Name == sqldb.MySQL {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
