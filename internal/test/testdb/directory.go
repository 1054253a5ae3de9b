package testdb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// directoryPrefix is the prefix of every server's directory. By it, directories of killed
// processes can be found.
const directoryPrefix = "perdure-testdb-"

// directory is the temporary directory of one server: its data, its log, and a lock that is
// held while this process lives.
type directory struct {
	path  string
	owner owner
	lock  *os.File
}

func (d *directory) data() string { return filepath.Join(d.path, "data") }
func (d *directory) log() string  { return filepath.Join(d.path, "server.log") }

// newDirectory creates a directory that the server's user can reach, and removes the
// directories of killed processes. A server that need not be durable lives in memory where
// there is room: creating a database takes a tenth of the time there.
func newDirectory(c Config) (*directory, error) {
	o, err := serverOwner()
	if err != nil {
		return nil, err
	}
	candidates := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if memory := memoryDirectory(); memory != "" && !c.Durable {
		candidates = append([]string{memory}, candidates...)
	}
	parent, err := reachable(o, candidates...)
	if err != nil {
		return nil, err
	}
	sweep(parent)
	for {
		d, err := tryDirectory(parent, c.Engine, o)
		if !errors.Is(err, errSwept) {
			return d, err
		}
	}
}

// errSwept reports that another process took the new directory for an abandoned one, before
// this process held its lock.
var errSwept = errors.New("directory was swept")

func tryDirectory(parent string, e Engine, o owner) (*directory, error) {
	path, err := os.MkdirTemp(parent, directoryPrefix+string(e)+"-")
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, owner: o}
	if err := d.fill(); err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

// fill takes the lock, creates the log, and gives both to the server's user. The server's
// own tool creates the data directory.
func (d *directory) fill() error {
	var err error
	if d.lock, err = acquire(lockPath(d.path)); err != nil {
		return err
	}
	if err := os.WriteFile(d.log(), nil, 0o600); err != nil {
		return err
	}
	return errors.Join(d.owner.own(d.path), d.owner.own(d.log()))
}

func (d *directory) remove() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// truncateLog empties the log, so that its tail covers only this start.
func (d *directory) truncateLog() error { return os.Truncate(d.log(), 0) }

func (d *directory) logTail() string {
	text, err := os.ReadFile(d.log())
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

// tail returns the last lines of text, indented.
func tail(text []byte) string {
	const lines = 25
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	last := all[max(0, len(all)-lines):]
	return "    | " + string(bytes.Join(last, []byte("\n    | ")))
}

// reachable returns the first of the candidates that the owner can enter.
func reachable(o owner, candidates ...string) (string, error) {
	var errs []error
	for _, c := range candidates {
		path, err := filepath.EvalSymlinks(c)
		if err == nil {
			err = o.canEnter(path)
		}
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no temporary directory for a server: %w", errors.Join(errs...))
}

// sweep removes the directories whose lock no process holds. It ignores errors, because the
// cleanup is optional.
func sweep(parent string) {
	paths, err := filepath.Glob(filepath.Join(parent, directoryPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		if _, err := os.Stat(lockPath(path)); err != nil {
			continue
		}
		lock, err := acquire(lockPath(path))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}

func lockPath(dir string) string { return filepath.Join(dir, "lock") }
