package testdb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

// MySQLTemplate returns the URL of a separate MariaDB database for the test, with the
// tables and rows that prepare creates. MariaDB cannot copy a database, and creating tables
// is its most expensive operation. So a database is reused after the test, in the next test
// of this process. It is emptied before that, or dropped if the test changed its tables. A
// database that still has a connection is not reused. prepare is called with one database
// at a time.
func MySQLTemplate(t testing.TB, name string, prepare func(url string) error) string {
	t.Helper()
	s := sharedServer(t, Config{Engine: MariaDB})
	p := s.pool(name, prepare)
	database, err := p.acquire()
	if err != nil {
		t.Fatalf("take a database of the pool %s: %v", name, err)
	}
	t.Cleanup(func() { p.release(database) })
	url, err := withDatabase(s.url, database)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// pool is a set of equal databases on one server. One of them, the model, is never handed
// out: the others are compared with it.
type pool struct {
	server  *Server
	prepare func(url string) error

	mu    sync.Mutex
	model *model   // nil until the first database is requested
	err   error    // why there is no model
	used  []string // databases whose tests have ended, not yet emptied
	all   []string // all created databases, including the model's
}

func (s *Server) pool(name string, prepare func(url string) error) *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[name]
	if p == nil {
		p = &pool{server: s, prepare: prepare}
		s.pools[name] = p
	}
	return p
}

// acquire returns a database in the state that prepare created.
func (p *pool) acquire() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	m, err := p.getModel(ctx)
	if err != nil {
		return "", err
	}
	for {
		database, err := p.takeUsed(ctx, m)
		if err != nil {
			return "", err
		}
		if database == "" {
			return p.create()
		}
		equal, err := m.restore(ctx, database)
		if err != nil || equal {
			return database, err
		}
		if err := p.server.drop(database); err != nil {
			return "", err
		}
	}
}

// getModel returns the model, which the first caller creates.
func (p *pool) getModel(ctx context.Context) (*model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.model == nil && p.err == nil {
		p.err = errors.New("its preparation did not return") // if prepare calls runtime.Goexit
		p.model, p.err = p.newModel(ctx)
	}
	return p.model, p.err
}

func (p *pool) newModel(ctx context.Context) (*model, error) {
	database := databaseName()
	p.all = append(p.all, database)
	if err := p.server.prepareTemplate(database, p.prepare); err != nil {
		return nil, err
	}
	db, err := p.server.database()
	if err != nil {
		return nil, err
	}
	return readModel(ctx, db, database)
}

// create creates another database, one at a time: migrations wait for each other anyway.
func (p *pool) create() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	database := databaseName()
	p.all = append(p.all, database)
	return database, p.server.prepareTemplate(database, p.prepare)
}

// takeUsed returns a used database that has no connection, or "". A connection may remain
// for a short time after it was closed, and longer after its process was killed.
func (p *pool) takeUsed(ctx context.Context, m *model) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.used) == 0 {
		return "", nil
	}
	connected, err := m.connected(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(p.used, func(database string) bool { return !slices.Contains(connected, database) })
	if i < 0 {
		return "", nil
	}
	database := p.used[i]
	p.used = slices.Delete(p.used, i, i+1)
	return database, nil
}

// release returns a database to the pool. It is emptied when the next test requests it.
func (p *pool) release(database string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = append(p.used, database)
}

// drop removes the databases from a server that outlives this process.
func (p *pool) drop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, database := range p.all {
		errs = append(errs, p.server.drop(database))
	}
	return errors.Join(errs...)
}
