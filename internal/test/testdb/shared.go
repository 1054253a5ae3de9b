package testdb

import (
	"errors"
	"os"
	"sync"
)

// sharedServers holds the servers that all tests of this process share.
var sharedServers = map[Config]*lazyServer{
	{Engine: PostgreSQL}:                {config: Config{Engine: PostgreSQL}},
	{Engine: PostgreSQL, Durable: true}: {config: Config{Engine: PostgreSQL, Durable: true}},
	{Engine: MariaDB}:                   {config: Config{Engine: MariaDB}},
	{Engine: MariaDB, Durable: true}:    {config: Config{Engine: MariaDB, Durable: true}},
}

// lazyServer is a server that is started, or connected to, on first use.
type lazyServer struct {
	config Config

	mu     sync.Mutex
	tried  bool
	server *Server
	err    error
}

// get returns the server. It tries to start it only once: a second try would fail too, and
// each try takes seconds.
func (l *lazyServer) get() (*Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried {
		l.tried = true
		l.server, l.err = find(l.config, os.Getenv)
	}
	return l.server, l.err
}

func (l *lazyServer) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return nil
	}
	return l.server.Close()
}

// find returns the server that the environment names, or starts one.
func find(c Config, getenv func(string) string) (*Server, error) {
	if url := named(c, getenv); url != "" {
		return connect(c, url)
	}
	return Start(c)
}

// named returns the URL that the environment has for c. The plain variable is also used for
// durable servers: a user who sets only that variable provides an ordinary server, which
// syncs.
func named(c Config, getenv func(string) string) string {
	if url := getenv(c.Variable()); url != "" {
		return url
	}
	return getenv(Config{Engine: c.Engine}.Variable())
}

// closeShared closes all servers that were used.
func closeShared() error {
	var errs []error
	for _, l := range sharedServers {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
