package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// mariadb runs the MariaDB programs: the server and the script that creates its
// system tables.
type mariadb struct {
	server, install string
	durable         bool
}

// findMariaDB looks for the two programs. Debian installs the server in /usr/sbin, which is
// not on every user's PATH.
func findMariaDB(durable bool, path string) (program, error) {
	dirs := append(filepath.SplitList(path),
		"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/opt/mariadb/bin")
	server, install := lookIn(dirs, "mariadbd"), lookIn(dirs, "mariadb-install-db")
	if server == "" || install == "" {
		return nil, &MissingError{
			Program:  "mariadbd",
			Install:  "the MariaDB server, version 10.6 or newer (Debian: apt-get install mariadb-server)",
			Variable: Config{Engine: MariaDB, Durable: durable}.Variable(),
		}
	}
	return &mariadb{
		server:  filepath.Join(server, "mariadbd"),
		install: filepath.Join(install, "mariadb-install-db"),
		durable: durable,
	}, nil
}

func (m *mariadb) prepare(dir *directory) error {
	if err := m.writeInit(dir); err != nil {
		return err
	}
	return runTool(dir, []string{
		m.install,
		"--no-defaults",
		"--datadir=" + dir.data(),
		"--auth-root-authentication-method=normal",
		"--skip-test-db",
		"--skip-name-resolve",
		"--innodb-log-file-size=16M",
		"--innodb-flush-method=nosync",
		"--tmpdir=" + dir.path,
	})
}

// writeInit writes the statements that the server runs at each start, one per line. They
// create the user of the tests, because root cannot log in over TCP everywhere.
func (m *mariadb) writeInit(dir *directory) error {
	const text = "CREATE USER IF NOT EXISTS 'perdure'@'127.0.0.1';\n" +
		"GRANT ALL PRIVILEGES ON *.* TO 'perdure'@'127.0.0.1' WITH GRANT OPTION;\n"
	err := os.WriteFile(m.initFile(dir), []byte(text), 0o600)
	return errors.Join(err, dir.owner.own(m.initFile(dir)))
}

func (m *mariadb) initFile(dir *directory) string { return filepath.Join(dir.path, "init.sql") }

func (m *mariadb) arguments(dir *directory, port int) []string {
	args := []string{
		m.server,
		"--no-defaults",
		"--datadir=" + dir.data(),
		"--init-file=" + m.initFile(dir),
		"--tmpdir=" + dir.path,
		"--pid-file=" + filepath.Join(dir.path, "pid"),
		"--socket=socket", // in the data directory; a full path may be too long for a socket
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
		"--skip-name-resolve",
		"--max-connections=500",
		"--character-set-server=utf8mb4",
		"--innodb-buffer-pool-size=64M",
		"--innodb-log-file-size=16M",
	}
	if m.durable {
		return append(args, "--innodb-flush-log-at-trx-commit=1")
	}
	return append(args,
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-doublewrite=0",
		"--innodb-flush-method=nosync",
		"--debug-no-sync",
	)
}

func (m *mariadb) url(port int) string {
	return fmt.Sprintf("mysql://perdure@127.0.0.1:%d/mysql", port)
}

func (m *mariadb) dataDirectory(ctx context.Context, db *sql.DB) (dir string, err error) {
	err = db.QueryRowContext(ctx, `SELECT @@datadir`).Scan(&dir)
	return dir, err
}

func (m *mariadb) stopSignal() syscall.Signal { return syscall.SIGTERM }

func (m *mariadb) killSignal() syscall.Signal { return syscall.SIGKILL }
