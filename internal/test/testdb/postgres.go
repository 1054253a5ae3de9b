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

// PostgresPrograms is the variable that names the directory with the programs of the
// PostgreSQL version to test on. scripts/postgres.sh installs versions.
const PostgresPrograms = "PERDURE_TEST_POSTGRES_BIN"

// postgres runs the PostgreSQL programs found in bin.
type postgres struct {
	bin     string
	durable bool
}

// findPostgres looks for initdb and postgres, which must have the same version and
// therefore be in one directory. Debian does not install them on the PATH.
func findPostgres(durable bool, path string) (program, error) {
	if chosen := os.Getenv(PostgresPrograms); chosen != "" {
		path = chosen
	}
	dirs := append(filepath.SplitList(path), newestFirst(
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
	)...)
	bin := lookIn(dirs, "initdb", "postgres")
	if bin == "" {
		return nil, &MissingError{
			Program:  "initdb",
			Install:  "the PostgreSQL server, version 14 or newer (Debian: apt-get install postgresql)",
			Variable: Config{Engine: PostgreSQL, Durable: durable}.Variable(),
		}
	}
	return &postgres{bin: bin, durable: durable}, nil
}

// prepare runs initdb. Not every system has the locale C.UTF-8. The locale C exists
// everywhere, and differs only in the case of letters beyond ASCII.
func (p *postgres) prepare(dir *directory) error {
	err := p.initdb(dir, "C.UTF-8")
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir.data()))
		if p.initdb(dir, "C") == nil {
			return nil
		}
	}
	return err
}

func (p *postgres) initdb(dir *directory, locale string) error {
	return runTool(dir, []string{
		filepath.Join(p.bin, "initdb"),
		"--pgdata=" + dir.data(),
		"--username=perdure",
		"--auth=trust",
		"--encoding=UTF8",
		"--locale=" + locale,
		"--no-sync",
		"--no-instructions",
	})
}

func (p *postgres) arguments(dir *directory, port int) []string {
	args := []string{
		filepath.Join(p.bin, "postgres"),
		"-D", dir.data(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=", // TCP only: nothing outside the directory
		"-c", "max_connections=500",
		"-c", "shared_buffers=128MB",
	}
	if !p.durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_wal_size=256MB")
	}
	return args
}

func (p *postgres) url(port int) string {
	return fmt.Sprintf("postgres://perdure@127.0.0.1:%d/postgres?sslmode=disable", port)
}

func (p *postgres) dataDirectory(ctx context.Context, db *sql.DB) (dir string, err error) {
	err = db.QueryRowContext(ctx, `SHOW data_directory`).Scan(&dir)
	return dir, err
}

// stopSignal is PostgreSQL's fast shutdown: it ends the sessions, then writes a
// checkpoint.
func (p *postgres) stopSignal() syscall.Signal { return syscall.SIGINT }

// killSignal is PostgreSQL's immediate shutdown: no checkpoint, and recovery on the next
// start, as after a crash. SIGKILL would leave the sessions' processes running, which block
// the next start for some time.
func (p *postgres) killSignal() syscall.Signal { return syscall.SIGQUIT }
