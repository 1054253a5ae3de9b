package table

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/schema"
)

// create returns the statement that creates the table with all its columns.
func (b Builder) create(t *schema.Table) string {
	lines := []string{b.q("_id") + " " + b.grammar().identity, b.q("id") + " " + b.stringType(schema.MaxID) + " not null unique"}
	for _, c := range t.Columns() {
		lines = append(lines, b.column(c))
	}
	lines = append(lines, b.q("_version")+" "+b.grammar().version+" not null default 0")
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
	if b.grammar().inlineKeys {
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

// indexName derives the name of an index from its columns, so that a changed description is
// a new index.
func (b Builder) indexName(t *schema.Table, i schema.Index) string {
	suffix := "idx"
	if i.Unique {
		suffix = "key"
	}
	name := strings.Join(append(append([]string{t.Name()}, i.Columns...), suffix), "_")
	if b.grammar().globalIndexes {
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

func (b Builder) columnType(c schema.Column) string {
	if c.Type() == schema.TypeString {
		return b.stringType(c.MaxLen())
	}
	return b.grammar().types[c.Type()]
}

// stringType returns the type of a string column. Where the database needs no limit for an
// index, the type has none and package edge checks the limit: a longer limit then needs no
// migration.
func (b Builder) stringType(limit int) string {
	return strings.ReplaceAll(b.grammar().types[schema.TypeString], "%d", strconv.Itoa(limit))
}

func (b Builder) tableOptions() string {
	return strings.ReplaceAll(b.grammar().options, "%s", b.Dialect.Collation)
}

// literal returns a static default for existing rows. New rows get their default from the
// engine, so that the outbox shows it.
func (b Builder) literal(c schema.Column, v any) string {
	g := b.grammar()
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		if v {
			return g.truths[1]
		}
		return g.truths[0]
	case time.Time:
		if g.timeLayout == "" {
			return strconv.FormatInt(v.UnixMicro(), 10)
		}
		return b.quoteText(v.Format(g.timeLayout))
	case []byte:
		return fmt.Sprintf(g.bytes, hex.EncodeToString(v))
	case float64:
		return b.quoteText(strconv.FormatFloat(v, 'g', -1, 64))
	}
	text := b.quoteText(fmt.Sprintf("%s", v))
	if c.Type() == schema.TypeText || c.Type() == schema.TypeJSON {
		return fmt.Sprintf(g.longDefault, text)
	}
	return text
}

func (b Builder) quoteText(s string) string {
	if b.grammar().backslash {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
