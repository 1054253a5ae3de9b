package table

import (
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// grammar has the differences between databases in the statements of this package. To add a
// database, add an entry to grammars.
type grammar struct {
	// identity is the type of the internal id, which is never reused for another row.
	identity string
	// types are the types of columns. The type of schema.TypeString takes the limit of the
	// string if it has a %d.
	types map[schema.Type]string
	// options are appended to a new table; their %s is the collation.
	options string
	// inlineKeys is true if a new column must declare its foreign key inline.
	inlineKeys bool
	// globalIndexes is true if index names are unique within a database.
	globalIndexes bool
	// nullsLast is true if null is sorted last by default.
	nullsLast bool
	// jsonText is a cast with which the driver reads the JSON document null as a document.
	jsonText string
	// finite is true if a number cannot be infinite or NaN.
	finite bool
	// truths are the literals for false and true.
	truths [2]string
	// timeLayout is the layout of the literal of a time; empty: microseconds.
	timeLayout string
	// bytes is the literal of bytes; its %s is their hexadecimal text.
	bytes string
	// longDefault is the format of the default of a text without a limit.
	longDefault string
	// backslash is true if a backslash in a literal must be doubled.
	backslash bool
	// columns and indexes are the queries for the columns and indexes of a table, by
	// namespace and name.
	columns, indexes string
}

var grammars = map[string]*grammar{
	sqldb.Postgres: {
		identity: "bigint generated always as identity primary key",
		types: map[schema.Type]string{
			schema.TypeString: "text", schema.TypeText: "text", schema.TypeInt: "bigint", schema.TypeFloat: "double precision", schema.TypeBool: "boolean",
			schema.TypeTime: "timestamptz", schema.TypeJSON: "jsonb", schema.TypeBytes: "bytea", schema.TypeRef: "bigint",
		},
		nullsLast: true, jsonText: "::text", // pgx reads the document null as NULL
		truths: [2]string{"false", "true"}, timeLayout: "2006-01-02 15:04:05.999999Z07:00", bytes: `'\x%s'`, longDefault: "%s",
		columns: "select column_name::text, data_type::text from information_schema.columns where table_schema = $1 and table_name = $2",
		indexes: "select indexname::text from pg_indexes where schemaname = $1 and tablename = $2",
	},
	sqldb.SQLite: {
		identity: "integer primary key autoincrement",
		types: map[schema.Type]string{
			schema.TypeString: "text", schema.TypeText: "text", schema.TypeInt: "integer", schema.TypeFloat: "real", schema.TypeBool: "integer",
			schema.TypeTime: "integer", schema.TypeJSON: "text", schema.TypeBytes: "blob", schema.TypeRef: "integer",
		},
		inlineKeys: true, globalIndexes: true,
		truths: [2]string{"0", "1"}, bytes: "x'%s'", longDefault: "%s",
		columns: "select name, type from pragma_table_info(?1 || '_' || ?2)",
		indexes: "select name from pragma_index_list(?1 || '_' || ?2)",
	},
	sqldb.MySQL: {
		identity: "bigint not null auto_increment primary key",
		types: map[schema.Type]string{
			schema.TypeString: "varchar(%d)", schema.TypeText: "longtext", schema.TypeInt: "bigint", schema.TypeFloat: "double", schema.TypeBool: "tinyint(1)",
			schema.TypeTime: "datetime(6)", schema.TypeJSON: "longtext", schema.TypeBytes: "longblob", schema.TypeRef: "bigint",
		},
		options: " engine=InnoDB default character set utf8mb4 collate %s", finite: true,
		truths: [2]string{"0", "1"}, timeLayout: "2006-01-02 15:04:05.999999", bytes: "(x'%s')",
		longDefault: "(%s)", // an expression, not a literal
		backslash:   true,
		columns:     "select column_name, column_type from information_schema.columns where table_schema = database() and table_name = concat(?, '_', ?)",
		indexes:     "select distinct index_name from information_schema.statistics where table_schema = database() and table_name = concat(?, '_', ?)",
	},
}

func (b Builder) grammar() *grammar { return grammars[b.Dialect.Name] }
