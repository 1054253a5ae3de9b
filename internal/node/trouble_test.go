package node_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/server"
)

// client sends requests with a token.
type client struct {
	*testing.T
	url, token string
	starting   bool
	strange    atomic.Int64 // responses that are neither successful nor those of an outage
}

// troubled returns a client of a node.
func troubled(t *testing.T, eng *perdure.Engine) *client {
	t.Helper()
	access, err := auth.New(eng, nil)
	enginetest.NoError(t, err)
	token, err := access.Create(t.Context(), "client", auth.Admin, 0)
	enginetest.NoError(t, err)
	quiet := fsm.Define("quiet", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	n, _ := run(t, eng, node.Options{Server: server.Options{Definitions: []fsm.Definer{quiet}, OnError: func(error) {}}})
	c := &client{T: t, url: n.URL(), token: token.Secret, starting: true}
	enginetest.Eventually(t, "the definition is stored", func() bool { return c.send(http.MethodGet, "/v1/definitions/quiet", "") == http.StatusOK })
	c.starting = false
	return c
}

// send sends a request and checks that a failure is reported as one of the database.
func (c *client) send(method, path, body string) int {
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Error(err)
		return 0
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	var problem struct{ Code string }
	_ = json.Unmarshal(content, &problem)
	switch {
	case answer.StatusCode < 300:
	case answer.StatusCode == http.StatusServiceUnavailable && (answer.Header.Get("Retry-After") != "" || problem.Code == "uncertain"):
	default:
		if !c.starting && c.strange.Add(1) < 5 {
			c.Errorf("%s %s: %d with Retry-After %q: %s", method, path, answer.StatusCode, answer.Header.Get("Retry-After"), content)
		}
	}
	return answer.StatusCode
}

func (c *client) list() int { return c.send(http.MethodGet, "/v1/instances", "") }

func (c *client) start(state string) int {
	return c.send(http.MethodPost, "/v1/instances", fmt.Sprintf(`{"definition":"quiet","state":%q}`, state))
}

func (c *client) ready() int {
	status, _ := get(c.T, c.url+"/readyz")
	return status
}

// both waits until reads and writes are answered with these statuses, and readyz with
// another.
func (c *client) both(read, write, ready int, state string) {
	c.Helper()
	enginetest.Eventually(c, fmt.Sprintf("reads give %d, writes %d and readyz %d", read, write, ready), func() bool {
		return c.list() == read && c.start(state) == write && c.ready() == ready
	})
}

// A stopped server is reported as unavailable, by requests in every state, and serves again
// without a restart of the process.
func TestAStoppedDatabaseIsReportedAsUnavailable(t *testing.T) {
	t.Parallel()
	for name, private := range map[string]func(testing.TB) *testdb.Server{enginetest.Postgres: testdb.PrivatePostgres, enginetest.MySQL: testdb.PrivateMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := private(t)
			eng, err := perdure.Open(t.Context(), database.Database(t), nil)
			enginetest.NoError(t, err)
			defer eng.Close()
			c := troubled(t, eng)
			c.both(http.StatusOK, http.StatusCreated, http.StatusOK, "before")
			var work sync.WaitGroup
			over := make(chan struct{})
			for range 4 {
				work.Go(func() {
					for {
						select {
						case <-over:
							return
						case <-time.After(5 * time.Millisecond): // leaves time to the server
							c.list()
							c.start("during")
						}
					}
				})
			}
			enginetest.NoError(t, database.Stop())
			c.both(http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusServiceUnavailable, "stopped")
			enginetest.NoError(t, database.Restart())
			c.both(http.StatusOK, http.StatusCreated, http.StatusOK, "after")
			close(over)
			work.Wait()
		})
	}
}

// A read finds connections that the server has ended, and is repeated on a new one. The
// client does not notice.
func TestTerminatedConnectionsFailNoRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.Postgres, enginetest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			c := troubled(t, db.Open(t, nil))
			raw := db.SQL(t)
			var work sync.WaitGroup
			var reads, failed atomic.Int64
			over := make(chan struct{})
			// A read is repeated once. So connections are terminated between reads, not during both
			// attempts of one.
			var terminating sync.RWMutex
			for range 4 {
				work.Go(func() {
					for {
						select {
						case <-over:
							return
						case <-time.After(5 * time.Millisecond):
						}
						terminating.RLock()
						if status := c.list(); status != http.StatusOK {
							failed.Add(1)
						}
						terminating.RUnlock()
						reads.Add(1)
					}
				})
			}
			for range 5 {
				before := reads.Load()
				enginetest.Eventually(t, "requests are answered", func() bool { return reads.Load() > before+20 })
				terminating.Lock()
				err := terminateAll(t, db, raw)
				terminating.Unlock()
				enginetest.NoError(t, err)
			}
			before := reads.Load()
			enginetest.Eventually(t, "requests are answered", func() bool { return reads.Load() > before+20 })
			close(over)
			work.Wait()
			if n := failed.Load(); n > 0 {
				t.Errorf("%d of %d reads failed", n, reads.Load())
			}
		})
	}
}

// terminateAll ends all connections to the database except those of raw.
func terminateAll(t *testing.T, db enginetest.Database, raw *sql.DB) error {
	t.Helper()
	if db.Name == enginetest.Postgres {
		_, err := raw.ExecContext(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		return err
	}
	rows, err := raw.QueryContext(t.Context(), "select id from information_schema.processlist where db = database() and id <> connection_id()")
	if err != nil {
		return err
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, id := range ids {
		_, _ = raw.ExecContext(t.Context(), fmt.Sprintf("kill connection %d", id)) // it may have ended
	}
	return nil
}

// A database that can be read but not written is not ready, and says so to writers.
func TestAFullDiskIsReportedAsUnavailable(t *testing.T) {
	t.Parallel()
	t.Run(enginetest.SQLite, func(t *testing.T) {
		t.Parallel()
		dir := smallDisk(t, 8<<20)
		raw, err := os.ReadFile(strings.TrimPrefix(enginetest.New(t, enginetest.SQLite).DSN, "sqlite:"))
		enginetest.NoError(t, err)
		enginetest.NoError(t, os.WriteFile(filepath.Join(dir, "perdure.db"), raw, 0o600))
		db := enginetest.Database{Name: enginetest.SQLite, DSN: "sqlite:" + filepath.Join(dir, "perdure.db")}
		fillDisk(t, troubled(t, db.Open(t, nil)), dir)
	})
	t.Run(enginetest.Postgres, func(t *testing.T) {
		t.Parallel()
		database := testdb.PrivatePostgres(t)
		dir := smallDisk(t, 48<<20)
		db := enginetest.Database{Name: enginetest.Postgres, DSN: database.DatabaseOn(t, dir)}
		fillDisk(t, troubled(t, db.Open(t, nil)), dir)
	})
}

// fillDisk fills the disk of a database, and then makes room again.
func fillDisk(t *testing.T, c *client, dir string) {
	t.Helper()
	noise := make([]byte, 20_000) // which no database can compress
	_, _ = rand.Read(noise)
	state := hex.EncodeToString(noise)
	c.both(http.StatusOK, http.StatusCreated, http.StatusOK, state)
	file, err := os.Create(filepath.Join(dir, "filler"))
	enginetest.NoError(t, err)
	defer file.Close()
	for block := bytes.Repeat([]byte{1}, 4096); err == nil; {
		_, err = file.Write(block)
	}
	c.both(http.StatusOK, http.StatusServiceUnavailable, http.StatusServiceUnavailable, state)
	enginetest.NoError(t, file.Truncate(0))
	c.both(http.StatusOK, http.StatusCreated, http.StatusOK, state)
}

// smallDisk returns a directory on a file system of that size.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "perdure-disk-")
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(dir) })
	if runtime.GOOS != "linux" {
		t.Skip("needs a file system in memory")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", size), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("needs the right to mount a file system: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v: %s", err, out)
		}
	})
	enginetest.NoError(t, os.Chmod(dir, 0o755))
	return dir
}
