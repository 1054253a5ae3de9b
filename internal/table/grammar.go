package table

import (
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// grammar is what differs between databases in the statements of this package. It is data:
// a database is added by an entry of grammars.
type grammar struct {
	// identity is the type of the internal id, which is never used again for another row.
	identity string
	// types are the types of columns; the one of schema.TypeString takes the limit of the
	// string if it has a %d.
	types map[schema.Type]string
	// options are at the end of a new table; their %s is the collation.
	options string
	// inlineKeys says that a new column can only be a foreign key by itself.
	inlineKeys bool
	// globalIndexes says that no two indexes of a database have the same name.
	globalIndexes bool
	// nullsLast says that null is sorted after everything else unless a statement says
	// otherwise.
	nullsLast bool
	// jsonText is a cast that lets the driver read the JSON document null as such.
	jsonText string
	// finite says that a number cannot be infinite or NaN.
	finite bool
	// truths are the literals for false and true.
	truths [2]string
	// timeLayout is the layout of the literal of a time; empty: microseconds.
	timeLayout string
	// bytes is the literal of bytes; its %s is their hexadecimal text.
	bytes string
	// longDefault is how the default of a text without a limit is written.
	longDefault string
	// backslash says that a backslash in a literal is doubled.
	backslash bool
	// columns and indexes are the queries for those of a table, by namespace and name.
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
