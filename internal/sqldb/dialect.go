package sqldb

import (
	"strconv"
	"strings"
)

// Names of the dialects.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	MySQL    = "mysql"
)

// Dialect describes one kind of database: the form of its SQL and the meaning of its
// errors. It is a value that a driver fills in.
type Dialect struct {
	// Name is SQLite, Postgres or MySQL.
	Name string
	// Collation is the exact, unpadded text collation (MySQL and MariaDB
	// name it differently); empty where plain text compares exactly.
	Collation string
	// Translate converts a driver's error into an error of package fault or of this
	// package, or returns it unchanged.
	Translate func(error) error
	// Args converts the values of a statement for the driver, in place; nil if no
	// conversion is needed.
	Args func([]any)
	// Dest converts scan destinations for the driver; nil if no conversion is needed.
	Dest func([]any)
	// Lanes is the maximum number of groups of units that commit concurrently.
	Lanes int
	// ServerClock is true if the database's clock decides what is due. SQLite has no
	// server, so there the process's clock decides.
	ServerClock bool
	// Relaxed is the reason why acknowledged commits may be lost in a crash; empty if they
	// cannot be lost.
	Relaxed string
	// Cluster is true if the server is a node of a cluster in which all nodes write: locks
	// are those of the node. See Clustered.
	Cluster bool
}

// Rebind rewrites the ? placeholders of query into the dialect's own. A ?
// inside quotes or a comment stays.
func (d Dialect) Rebind(query string) string {
	if d.Name != Postgres {
		return query
	}
	return numberPlaceholders(query)
}

// Quote returns the identifier in the dialect's quotes. Identifiers were validated before;
// doubling the quote is a second protection.
func (d Dialect) Quote(ident string) string {
	if d.Name == MySQL {
		return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Qualify returns the quoted name of a table of a namespace: a schema on
// PostgreSQL, a prefix elsewhere.
func (d Dialect) Qualify(namespace, table string) string {
	if d.Name == Postgres {
		return d.Quote(namespace) + "." + d.Quote(table)
	}
	return d.Quote(namespace + "_" + table)
}

// LockShare returns the clause that keeps the selected row from being deleted
// until the transaction ends.
func (d Dialect) LockShare() string {
	switch d.Name {
	case Postgres:
		return " for key share"
	case MySQL:
		return " lock in share mode"
	}
	return ""
}

// LockUpdate returns the clause that keeps the selected row from being changed
// until the transaction ends.
func (d Dialect) LockUpdate() string {
	switch d.Name {
	case Postgres:
		return " for no key update"
	case MySQL:
		return " for update"
	}
	return ""
}

func numberPlaceholders(query string) string {
	var b strings.Builder
	b.Grow(len(query) + 16)
	n := 0
	for i := 0; i < len(query); i++ {
		if end := skipQuoted(query, i); end > i {
			b.WriteString(query[i:end])
			i = end - 1
			continue
		}
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// skipQuoted returns the end of the quoted text or comment that begins at i,
// or i if none does.
func skipQuoted(query string, i int) int {
	switch {
	case query[i] == '\'' || query[i] == '"':
		return closing(query, i+1, query[i:i+1])
	case strings.HasPrefix(query[i:], "--"):
		return closing(query, i+2, "\n")
	case strings.HasPrefix(query[i:], "/*"):
		return closing(query, i+2, "*/")
	}
	return i
}

func closing(query string, from int, mark string) int {
	end := strings.Index(query[from:], mark)
	if end < 0 {
		return len(query)
	}
	return from + end + len(mark)
}
