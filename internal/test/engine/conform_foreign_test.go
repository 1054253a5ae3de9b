package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// describedShop is what the cases of this file describe.
func describedShop() (*schema.Table, *perdure.Options) {
	makers := schema.NewTable("makers", schema.String("name"))
	items := schema.NewTable("items",
		schema.String("name").Unique(), schema.Int("stock").Default(0), schema.Decimal("price").Optional(), schema.Ref("maker", makers).Optional()).Index("stock")
	return items, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", makers, items)}, Outbox: true}
}

// foreignShop creates the schema, and a table that another program could have made.
func foreignShop(t testing.TB, db enginetest.Database, columns string) {
	t.Helper()
	if db.Name == enginetest.Postgres {
		db.Exec(t, "create schema if not exists shop")
	}
	db.Exec(t, "create table "+db.Table("shop", "items")+" ("+columns+")")
}

// refusedShop ends the test unless Open refuses the table with all the texts, and changes
// nothing. It returns the error.
func refusedShop(t testing.TB, db enginetest.Database, texts ...string) {
	t.Helper()
	before := schemaOf(t, db)
	_, options := describedShop()
	_, err := perdure.Open(t.Context(), db.DSN, options)
	e := enginetest.As[*fault.Invalid](t, err)
	for _, text := range append(texts, "not created by Perdure") {
		if !strings.Contains(e.Error(), text) {
			t.Errorf("the error does not have %q: %v", text, e)
		}
	}
	if name := strings.NewReplacer(`"`, "", "`", "").Replace(db.Table("shop", "items")); e.Field != "table "+name {
		t.Errorf("the error is about %q", e.Field)
	}
	if after := schemaOf(t, db); !maps.Equal(before, after) {
		t.Errorf("Open has changed tables:\n%v\n%v", before, after)
	}
}

// A table of another program is not altered: Open names what differs.
func (Conformance) AForeignTableIsRefusedAndNotAltered(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	db.Open(t, nil) // the tables of Perdure exist
	foreignShop(t, db, "id integer primary key, name varchar(20), stock float, extra integer not null")
	db.Exec(t, "insert into "+db.Table("shop", "items")+" (id, name, stock, extra) values (1, 'bolt', 1, 1)")
	refusedShop(t, db,
		"column _id must be ", "column id must be ", "column _version must be ", "does not exist",
		"column stock must be ", "but is ", "column price must be ", "column maker must ",
		"column extra is not described", "a unique index on name must exist", "an index on stock must exist")
	if n := db.Int(t, "select count(*) from "+db.Table("shop", "items")); n != 1 {
		t.Errorf("there are %d rows", n)
	}
}

// exactColumns are the columns of a table that another program has made as it is described.
var exactColumns = map[string]string{
	enginetest.Postgres: `_id bigserial primary key, id text not null unique, name text not null, stock bigint not null default 0, price numeric,
		maker bigint references shop.makers (_id), _version bigint not null default 0`,
	enginetest.SQLite: `_id integer primary key, id text not null unique, name text not null, stock integer not null default 0, price decimal_text,
		maker integer references shop_makers (_id), _version bigint not null default 0`,
	enginetest.MySQL: `_id bigint not null auto_increment primary key, id varchar(128) not null unique, name varchar(255) not null, stock bigint not null default 0, price decimal(65,30),
		maker bigint, _version bigint not null default 0, foreign key (maker) references shop_makers (_id)`,
}

// exactShop creates a table with the columns. The table that it refers to is Perdure's.
func exactShop(t testing.TB, db enginetest.Database, columns string) {
	t.Helper()
	makers := schema.NewTable("makers", schema.String("name"))
	db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", makers)}})
	options := ""
	if db.Name == enginetest.MySQL {
		options = " engine=InnoDB default character set utf8mb4 collate utf8mb4_nopad_bin"
	}
	db.Exec(t, "create table "+db.Table("shop", "items")+" ("+columns+")"+options)
	db.Exec(t, "create unique index own_name on "+db.Table("shop", "items")+" (name)")
	db.Exec(t, "create index own_stock on "+db.Table("shop", "items")+" (stock)")
}

// A table that is as described can be used, whoever made it. It is not altered later either.
func (Conformance) AForeignTableThatFitsIsUsedAndNotAltered(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	exactShop(t, db, exactColumns[db.Name])
	before := schemaOf(t, db)
	items, options := describedShop()
	eng := db.Open(t, options)
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(options.Schemas[0].Table("makers"), schema.Values{"id": "acme", "name": "Acme"})
		_, err := tx.Create(items, schema.Values{"id": "bolt", "name": "Bolt", "price": "0.10", "maker": "acme"})
		return err
	})
	sound(t, eng)
	if after := schemaOf(t, db); !maps.Equal(before, after) {
		t.Errorf("Open has changed tables:\n%v\n%v", before, after)
	}
	db.Unchanged(t, func() { db.Open(t, options) })
	makers := schema.NewTable("makers", schema.String("name"))
	more := schema.NewTable("items", append(items.Columns()[:3], schema.Int("more").Optional())...)
	_, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", makers, more)}})
	if e := enginetest.As[*fault.Invalid](t, err); !strings.Contains(e.Error(), "column more must be ") {
		t.Errorf("a new column of a foreign table: %v", e)
	}
}

// Each difference of a table that almost fits is found.
func (Conformance) EveryDifferenceOfAForeignTableIsFound(t *testing.T, db enginetest.Database) {
	for _, c := range []struct{ from, to, text string }{
		{"stock bigint not null", "stock bigint", "column stock must be not null, but allows null"},
		{"stock integer not null", "stock integer", "column stock must be not null, but allows null"},
		{"price numeric", "price numeric not null", "column price must allow null, but is not null"},
		{"price numeric", "price numeric(10,2)", "column price must be numeric, but is numeric(10,2)"},
		{"price decimal_text", "price numeric", "column price must be decimal_text, but is numeric"},
		{"price decimal(65,30)", "price decimal(10,2)", "column price must be decimal(65,30), but is decimal(10,2)"},
		{" references shop.makers (_id)", "", "column maker must refer to shop.makers, but refers to no table"},
		{"maker integer references shop_makers (_id)", "maker integer", "column maker must refer to shop_makers, but refers to no table"},
		{", foreign key (maker) references shop_makers (_id)", "", "column maker must refer to shop_makers, but refers to no table"},
		{"bigserial primary key", "bigint primary key", "column _id must be generated by the database"},
		{"id text not null unique", "id text not null", "a unique index on id must exist"},
		{"id varchar(128) not null unique", "id varchar(128) not null", "a unique index on id must exist"},
		{"_version bigint not null default 0", "_version bigint not null", "column _version must have the default 0"},
		{"name varchar(255)", "name varchar(255) collate utf8mb4_general_ci", "column name must have the collation utf8mb4_nopad_bin, but has utf8mb4_general_ci"},
	} {
		columns := strings.Replace(exactColumns[db.Name], c.from, c.to, 1)
		if columns == exactColumns[db.Name] {
			continue // another database has it
		}
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			db := enginetest.Empty(t, db.Name)
			exactShop(t, db, columns)
			refusedShop(t, db, c.text)
		})
	}
}

// A table that is no longer described is still Perdure's, and can be extended later.
func (Conformance) ATableThatWasLeftOutIsStillExtended(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	makers := func() *schema.Table { return schema.NewTable("makers", schema.String("name")) }
	open := func(tables ...*schema.Table) {
		t.Helper()
		db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", tables...)}})
	}
	open(makers(), schema.NewTable("items", schema.String("name")))
	open(makers())
	open(makers(), schema.NewTable("items", schema.String("name"), schema.Int("stock").Default(0)))
	if n := db.Int(t, "select count(stock) from "+db.Table("shop", "items")); n != 0 {
		t.Errorf("the column has %d values", n)
	}
}

// Early versions extended tables of other programs and recorded them. Such a table lacks the
// columns of Perdure's tables.
func (Conformance) AForeignTableThatAnEarlyVersionRecordedIsRefused(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	db.Open(t, nil)
	foreignShop(t, db, "id integer primary key, name varchar(20), price varchar(20)")
	now := "current_timestamp"
	if db.Name == enginetest.SQLite {
		now = "0"
	}
	db.Exec(t, "insert into "+db.Table("perdure", "created_tables")+" (schema_name, table_name, created_at) values ('shop', 'items', "+now+")")
	refusedShop(t, db, "column _version must be ")
}

// A process that dies between the record of a table and its creation leaves a record only.
func (Conformance) ARecordedTableThatDoesNotExistIsCreated(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	_, options := describedShop()
	db.Open(t, options)
	db.Exec(t, "drop table "+db.Table("shop", "items"))
	db.Open(t, options)
	if n := db.Int(t, "select count(*) from "+db.Table("shop", "items")); n != 0 {
		t.Errorf("there are %d rows", n)
	}
}
