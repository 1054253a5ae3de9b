package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The modes of a pooler.
const (
	// PoolTransactions assigns each transaction one of a few sessions.
	PoolTransactions = "transaction"
	// PoolSessions assigns each connection a session for its lifetime.
	PoolSessions = "session"
)

// Pooler starts PgBouncer in front of a PostgreSQL database, in one of its modes, and
// returns the database's URL through it. Statements are not prepared, because not every
// version supports that.
func Pooler(t testing.TB, database, mode string) string {
	t.Helper()
	through, stop, err := startPooler(database, mode)
	require(t, err)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop pooler: %v", err)
		}
	})
	return through
}

func findPooler(path string) (string, error) {
	bin := lookIn(append(filepath.SplitList(path), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"), "pgbouncer")
	if bin == "" {
		return "", &MissingError{Program: "pgbouncer", Install: "PgBouncer (Debian: apt-get install pgbouncer)"}
	}
	return filepath.Join(bin, "pgbouncer"), nil
}

func startPooler(database, mode string) (through string, stop func() error, err error) {
	program, err := findPooler(os.Getenv("PATH"))
	if err != nil {
		return "", nil, err
	}
	target, err := url.Parse(database)
	if err != nil {
		return "", nil, err
	}
	dir, err := newDirectory(Config{Engine: "pgbouncer"})
	if err != nil {
		return "", nil, err
	}
	for range portTries {
		var p *process
		if through, p, err = runPooler(program, dir, target, mode); err == nil {
			return through, func() error { return errors.Join(p.end(syscall.SIGTERM, stopTimeout), dir.remove()) }, nil
		}
	}
	return "", nil, errors.Join(fmt.Errorf("start pgbouncer: %w\n%s", err, dir.logTail()), dir.remove())
}

// runPooler tries one port.
func runPooler(program string, dir *directory, target *url.URL, mode string) (string, *process, error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	file := filepath.Join(dir.path, "pgbouncer.ini")
	if err := os.WriteFile(file, poolerConfig(target, port, mode), 0o600); err != nil {
		return "", nil, err
	}
	if err := dir.owner.own(file); err != nil {
		return "", nil, err
	}
	p, err := startProcess(dir, []string{program, file}, syscall.SIGKILL)
	if err != nil {
		return "", nil, err
	}
	through := *target
	through.Host = fmt.Sprintf("127.0.0.1:%d", port)
	query := through.Query()
	query.Set("default_query_exec_mode", "exec")
	query.Set("sslmode", "disable")
	through.RawQuery = query.Encode()
	if err := awaitPooler(p, through.String()); err != nil {
		return "", nil, errors.Join(err, p.end(syscall.SIGTERM, stopTimeout))
	}
	return through.String(), p, nil
}

// poolerConfig lets every client in as the user of the target.
func poolerConfig(target *url.URL, port int, mode string) []byte {
	host, serverPort := target.Hostname(), target.Port()
	if serverPort == "" {
		serverPort = "5432"
	}
	login := "user=" + target.User.Username()
	if password, ok := target.User.Password(); ok {
		login += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	return fmt.Appendf(nil, `[databases]
* = host=%s port=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 4
max_client_conn = 200
`, host, serverPort, login, port, mode)
}

// awaitPooler waits until the pooler connects to the server.
func awaitPooler(p *process, through string) error {
	db, err := Open(through)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it was only read
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("pgbouncer has ended: %w", errors.Join(p.err, err))
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
