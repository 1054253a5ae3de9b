package testdb

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Open returns connections to the database at a URL of this package, through database/sql.
// It does not connect immediately.
func Open(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch Engine(u.Scheme) {
	case PostgreSQL, "postgresql":
		return openPostgres(address)
	case MariaDB:
		return openMySQL(u)
	}
	return nil, fmt.Errorf("unknown scheme %q in a database URL", u.Scheme)
}

// OpenKeepingPlans is like Open, with connections that keep PostgreSQL's query plans, as
// the engine's connections do. It is for tests that run the same statements many times and
// do not change the tables in between.
func OpenKeepingPlans(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err == nil && Engine(u.Scheme) == MariaDB {
		return openMySQL(u)
	}
	c, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*c), nil
}

// openPostgres keeps no plans: tests change tables under their connections.
func openPostgres(address string) (*sql.DB, error) {
	c, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	return stdlib.OpenDB(*c), nil
}

// OpenInterpolating is like Open on MySQL, with connections that send a statement and its values
// together.
func OpenInterpolating(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return openConfig(u, true)
}

func openMySQL(u *url.URL) (*sql.DB, error) { return openConfig(u, false) }

func openConfig(u *url.URL, interpolate bool) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.InterpolateParams = interpolate
	c.Net, c.Addr = "tcp", u.Host
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	c.ParseTime = true
	c.Logger = log.New(io.Discard, "", 0) // a refused connection already returns an error
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// withDatabase returns address with another database in it.
func withDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}
