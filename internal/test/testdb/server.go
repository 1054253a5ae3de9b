package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = Patience
	stopTimeout  = Patience
	// portTries is the number of ports that Start tries. Another process may take a free port
	// before the server does.
	portTries = 5
)

// Engine is a database program.
type Engine string

// The engines, by the schemes of their URLs.
const (
	PostgreSQL Engine = "postgres"
	MariaDB    Engine = "mysql"
)

// Config selects a kind of server.
type Config struct {
	Engine Engine
	// Durable makes a commit wait for the disk. By default the server may lose data when it is
	// killed, and is several times as fast.
	Durable bool
}

// Variable returns the name of the environment variable that names a server of
// this kind.
func (c Config) Variable() string {
	name := "PERDURE_TEST_" + strings.ToUpper(string(c.Engine))
	if c.Durable {
		name += "_DURABLE"
	}
	return name
}

// program has the differences between the database programs.
type program interface {
	// prepare creates the data directory below dir.
	prepare(dir *directory) error
	// arguments returns the command line that serves the data on port, in the
	// foreground.
	arguments(dir *directory, port int) []string
	// url returns the address of the administrative database on port.
	url(port int) string
	// dataDirectory queries the server behind db for its data directory.
	dataDirectory(ctx context.Context, db *sql.DB) (string, error)
	// stopSignal requests an orderly shutdown.
	stopSignal() syscall.Signal
	// killSignal ends the server as a crash would.
	killSignal() syscall.Signal
}

// Server is a database server. Servers that this process started can be stopped and
// restarted. They keep their address.
type Server struct {
	config  Config
	program program // nil for a server that the environment named
	dir     *directory
	port    int
	url     string

	mu        sync.Mutex
	process   *process
	admin     *sql.DB
	templates map[string]*template
	pools     map[string]*pool
}

// Start starts a server on a free port of 127.0.0.1, with its own data directory. It fails
// with a *MissingError if the program is not installed. The caller closes the server. If
// the caller dies before, the server dies with it.
func Start(c Config) (*Server, error) {
	p, err := findProgram(c)
	if err != nil {
		return nil, err
	}
	dir, err := newDirectory(c)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, program: p, dir: dir, templates: map[string]*template{}, pools: map[string]*pool{}}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Engine, err), s.Close())
	}
	return s, nil
}

// connect returns the server at url, which this process must not stop.
func connect(c Config, url string) (*Server, error) {
	s := &Server{config: c, url: url, templates: map[string]*template{}, pools: map[string]*pool{}}
	db, err := Open(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Variable(), err)
	}
	s.admin = db
	return s, nil
}

// URL returns the address of the server's administrative database.
func (s *Server) URL() string { return s.url }

// Stop shuts the server down gracefully: committed data is on disk.
func (s *Server) Stop() error { return s.end(program.stopSignal) }

// Kill ends the server like a crash: transactions are aborted and the next start recovers
// from the log.
func (s *Server) Kill() error { return s.end(program.killSignal) }

// Restart starts the server again on its address and data. It first stops a running server
// gracefully.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serve()
}

// Close stops the server and removes its data. On a server that the environment named, it
// removes only what the tests left there.
func (s *Server) Close() error {
	if s.program == nil {
		return errors.Join(s.dropTemplates(), s.admin.Close())
	}
	return errors.Join(s.Kill(), s.dir.remove())
}

// start prepares the data and tries ports until one is free.
func (s *Server) start() error {
	if err := s.program.prepare(s.dir); err != nil {
		return err
	}
	var err error
	for range portTries {
		if s.port, err = freePort(); err != nil {
			return err
		}
		s.url = s.program.url(s.port)
		if err = s.serve(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// serve runs the server on its port and returns when it responds.
func (s *Server) serve() error {
	if err := s.dir.truncateLog(); err != nil {
		return err
	}
	p, err := startProcess(s.dir, s.program.arguments(s.dir, s.port), s.program.killSignal())
	if err != nil {
		return err
	}
	admin, err := Open(s.url)
	if err != nil {
		return err
	}
	if err := s.await(p, admin); err != nil {
		return errors.Join(err, admin.Close(), p.end(s.program.killSignal(), stopTimeout))
	}
	s.process, s.admin = p, admin
	return nil
}

var errPortTaken = errors.New("the port was taken by another process")

// await polls until the server responds. It verifies that the response comes from this
// server: if another process took the port, it may be another test's server.
func (s *Server) await(p *process, admin *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := s.program.dataDirectory(ctx, admin)
		if err == nil && strings.TrimSuffix(got, "/") == s.dir.data() {
			return nil
		}
		if err == nil {
			return errPortTaken
		}
		select {
		case <-tick.C:
		case <-p.done:
			return s.explainExit(p)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w; the end of its log:\n%s", err, s.dir.logTail())
		}
	}
}

func (s *Server) explainExit(p *process) error {
	log := s.dir.logTail()
	if strings.Contains(strings.ToLower(log), "address already in use") {
		return fmt.Errorf("%w\n%s", errPortTaken, log)
	}
	return fmt.Errorf("it exited: %w; the end of its log:\n%s", p.err, log)
}

// end signals the server and waits until it has exited. Without a running server it does
// nothing.
func (s *Server) end(signal func(program) syscall.Signal) error {
	if s.program == nil {
		return fmt.Errorf("the server of %s was not started here: it stays as it is", s.config.Variable())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	err := errors.Join(s.admin.Close(), s.process.end(signal(s.program), stopTimeout))
	s.process, s.admin = nil, nil
	return err
}

// database returns the administrative connections.
func (s *Server) database() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil {
		return nil, fmt.Errorf("the %s server is stopped", s.config.Engine)
	}
	return s.admin, nil
}

// PID returns the process id of the server. It is 0 if the server is stopped or was not
// started by this process.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// LogTail returns the end of the server's log, for a test that failed.
func (s *Server) LogTail() string {
	if s.dir == nil {
		return ""
	}
	return s.dir.logTail()
}

// findProgram returns the installed program for c.
func findProgram(c Config) (program, error) {
	switch c.Engine {
	case PostgreSQL:
		return findPostgres(c.Durable, os.Getenv("PATH"))
	case MariaDB:
		return findMariaDB(c.Durable, os.Getenv("PATH"))
	}
	return nil, fmt.Errorf("unknown engine %q", c.Engine)
}
