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
	// version is the type of the version of a row.
	version string
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
	// decimalText makes the driver read a decimal as text, decimalValue is the
	// form of a decimal that is passed as text.
	decimalText, decimalValue string
	// decimalOrder are the terms that sort a decimal column, if its own order is not that of
	// the numbers. %s is the column, and a ! reverses the direction.
	decimalOrder []string
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
	// columns, indexes and keys are the queries for an existing table, by namespace and name.
	// A column has a name, a type, whether it allows null, whether the database fills it, and
	// its collation. An index has a name, whether it is unique, and its columns. A foreign key
	// has a column and the table that it refers to.
	columns, indexes, keys string
}

var grammars = map[string]*grammar{
	sqldb.Postgres: {
		identity: "bigint generated always as identity primary key", version: "bigint",
		types: map[schema.Type]string{
			schema.TypeString: "text", schema.TypeText: "text", schema.TypeInt: "bigint", schema.TypeFloat: "double precision", schema.TypeDecimal: "numeric", schema.TypeBool: "boolean",
			schema.TypeTime: "timestamptz", schema.TypeJSON: "jsonb", schema.TypeBytes: "bytea", schema.TypeRef: "bigint",
		},
		nullsLast: true, jsonText: "::text", // pgx reads the document null as NULL
		decimalText: `::text as "_text"`, decimalValue: "?", // with its own name, "order by" would sort the text
		truths: [2]string{"false", "true"}, timeLayout: "2006-01-02 15:04:05.999999Z07:00", bytes: `'\x%s'`, longDefault: "%s",
		columns: `select a.attname::text, format_type(a.atttypid, a.atttypmod), not a.attnotnull, a.atthasdef or a.attidentity <> '', ''
from pg_attribute a
join pg_class t on t.oid = a.attrelid
join pg_namespace s on s.oid = t.relnamespace
where s.nspname = $1 and t.relname = $2 and t.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0 and not a.attisdropped`,
		indexes: `select i.relname::text, x.indisunique and x.indpred is null, string_agg(coalesce(a.attname::text, '*'), ',' order by k.n)
from pg_index x
join pg_class i on i.oid = x.indexrelid
join pg_class t on t.oid = x.indrelid
join pg_namespace s on s.oid = t.relnamespace
cross join lateral unnest(x.indkey::int2[]) with ordinality k (attnum, n)
left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum and k.attnum <> 0
where s.nspname = $1 and t.relname = $2
group by i.relname, x.indisunique, x.indpred is null`,
		keys: `select a.attname::text, rs.nspname || '.' || r.relname
from pg_constraint c
join pg_class t on t.oid = c.conrelid
join pg_namespace s on s.oid = t.relnamespace
join pg_class r on r.oid = c.confrelid
join pg_namespace rs on rs.oid = r.relnamespace
join pg_attribute a on a.attrelid = t.oid and a.attnum = c.conkey[1]
where s.nspname = $1 and t.relname = $2 and c.contype = 'f' and cardinality(c.conkey) = 1`,
	},
	sqldb.SQLite: {
		identity: "integer primary key autoincrement", version: "bigint",
		types: map[schema.Type]string{
			schema.TypeString: "text", schema.TypeText: "text", schema.TypeInt: "integer", schema.TypeFloat: "real", schema.TypeDecimal: "decimal_text", schema.TypeBool: "integer",
			schema.TypeTime: "integer", schema.TypeJSON: "text", schema.TypeBytes: "blob", schema.TypeRef: "integer",
		},
		inlineKeys: true, globalIndexes: true,
		// SQLite has no exact numbers with fractions. The name of the type makes it a text.
		// Numbers of one sign and one length of the integer part sort like their texts.
		decimalValue: "?",
		decimalOrder: []string{
			"case when substr(%[1]s, 1, 1) = '-' then -instr(%[1]s || '.', '.') else instr(%[1]s || '.', '.') end",
			"case when substr(%[1]s, 1, 1) = '-' then null else %[1]s end",
			"!case when substr(%[1]s, 1, 1) = '-' then %[1]s end",
		},
		truths: [2]string{"0", "1"}, bytes: "x'%s'", longDefault: "%s",
		columns: `select name, type, "notnull" = 0 and pk = 0, dflt_value is not null or pk > 0, '' from pragma_table_info(?1 || '_' || ?2)`,
		indexes: `select l.name, l."unique" and not l.partial, (select group_concat(coalesce(i.name, '*')) from pragma_index_info(l.name) i)
from pragma_index_list(?1 || '_' || ?2) l
union all
select 'primary key', 1, name from pragma_table_info(?1 || '_' || ?2) where pk = 1 and lower(type) = 'integer'`,
		keys: `select "from", "table" from pragma_foreign_key_list(?1 || '_' || ?2)`,
	},
	sqldb.MySQL: {
		identity: "bigint not null auto_increment primary key", version: "bigint",
		types: map[schema.Type]string{
			schema.TypeString: "varchar(%d)", schema.TypeText: "longtext", schema.TypeInt: "bigint", schema.TypeFloat: "double", schema.TypeDecimal: "decimal(65,30)", schema.TypeBool: "tinyint(1)",
			schema.TypeTime: "datetime(6)", schema.TypeJSON: "longtext", schema.TypeBytes: "longblob", schema.TypeRef: "bigint",
		},
		options: " engine=InnoDB default character set utf8mb4 collate %s", finite: true,
		decimalValue: "cast(? as decimal(65,30))", // a text would be compared as a double
		truths:       [2]string{"0", "1"}, timeLayout: "2006-01-02 15:04:05.999999", bytes: "(x'%s')",
		longDefault: "(%s)", // an expression, not a literal
		backslash:   true,
		columns: `select column_name, column_type, is_nullable = 'YES', column_default is not null or extra <> '', coalesce(collation_name, '')
from information_schema.columns
where table_schema = database() and table_name = concat(?, '_', ?)`,
		indexes: `select index_name, max(non_unique) = 0, group_concat(concat(coalesce(column_name, '*'), if(sub_part is null, '', '*')) order by seq_in_index)
from information_schema.statistics
where table_schema = database() and table_name = concat(?, '_', ?)
group by index_name`,
		keys: `select column_name, referenced_table_name
from information_schema.key_column_usage
where table_schema = database() and table_name = concat(?, '_', ?) and referenced_table_schema = database()`,
	},
}

func (b Builder) grammar() *grammar { return grammars[b.Dialect.Name] }
