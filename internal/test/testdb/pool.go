package testdb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

// MySQLTemplate returns the URL of a MariaDB database of the test's own that has the
// tables and the rows that prepare makes. MariaDB cannot copy a database, and to create
// tables is its most expensive work: a database is used again after the test, in the next
// test of this process. It is emptied before that, and dropped instead if the test changed
// its tables. While it has a connection, it is not used. prepare is called with one database at a time.
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

// pool is a number of equal databases on one server. One of them, the model, is never
// handed out: the others are compared with it.
type pool struct {
	server  *Server
	prepare func(url string) error

	mu    sync.Mutex
	model *model   // nil until the first database is wanted
	err   error    // why there is no model
	used  []string // databases whose tests have ended, not yet emptied
	all   []string // every database that was created, the model's too
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

// acquire returns a database that is as prepare left it.
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

// getModel returns the model, which the first caller makes.
func (p *pool) getModel(ctx context.Context) (*model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.model == nil && p.err == nil {
		p.err = errors.New("its preparation did not return") // if prepare ends the goroutine
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

// create makes another database, alone: migrations wait for each other anyway.
func (p *pool) create() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	database := databaseName()
	p.all = append(p.all, database)
	return database, p.server.prepareTemplate(database, p.prepare)
}

// takeUsed returns a database that has no connection, or "". A connection that was
// just closed takes a moment to go, and one of a killed process a while.
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

// release takes a database back. It is emptied when the next test wants it.
func (p *pool) release(database string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = append(p.used, database)
}

// drop removes the databases from a server that outlives us.
func (p *pool) drop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, database := range p.all {
		errs = append(errs, p.server.drop(database))
	}
	return errors.Join(errs...)
}
