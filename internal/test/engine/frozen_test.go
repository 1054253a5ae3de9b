//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// frozen are the roles of processes that stop while they write.
var frozen = map[string]func(db enginetest.Database) error{
	"joined":   stopBeforeCommit,
	"group":    writeForever,
	"outcome":  stopInOutcome,
	"consumer": stopInConsumer,
}

// stopBeforeCommit joins a transaction, and stops its own process before COMMIT.
func stopBeforeCommit(db enginetest.Database) error {
	ctx := context.Background()
	eng, err := perdure.Open(ctx, db.DSN, withOutbox())
	if err != nil {
		return err
	}
	raw, err := db.Raw()
	if err != nil {
		return err
	}
	tx, err := raw.BeginTx(ctx, &sql.TxOptions{Isolation: isolation(db)})
	if err != nil {
		return err
	}
	if err := eng.JoinSQL(ctx, tx, unitWith("frozen", false)); err != nil {
		return err
	}
	fmt.Println("ready")
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-time.After(time.Hour) // the other threads stop a moment later
	return tx.Commit()
}

// writeForever commits units from eight goroutines until the process is killed.
func writeForever(db enginetest.Database) error {
	eng, err := perdure.Open(context.Background(), db.DSN, withOutbox())
	if err != nil {
		return err
	}
	errs := make(chan error)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				err := eng.Update(context.Background(), unitWith(fmt.Sprint("child", w, "-", i), false))
				if err != nil && os.Getenv("PERDURE_TEST_DATABASE") != enginetest.SQLite {
					errs <- err
				}
				if w == 0 && i == 0 {
					fmt.Println("ready")
				}
			}
		}()
	}
	return <-errs
}

// startFrozen starts a process in a role, and waits until it is ready.
func startFrozen(t *testing.T, role string, db enginetest.Database) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "PERDURE_TEST_ROLE="+role, "PERDURE_TEST_DSN="+db.DSN, "PERDURE_TEST_DATABASE="+db.Name)
	out, err := c.StdoutPipe()
	enginetest.NoError(t, err)
	var problems strings.Builder
	c.Stderr = &problems
	enginetest.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // also a stopped process
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the process said %q: %v %s", line, err, problems.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return c
}

// awaitStop waits until the process has stopped.
func awaitStop(t *testing.T, c *exec.Cmd) {
	t.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process has not stopped: %v, %v", status, err)
	}
}

// stillStopped ends the test if the state of the process has changed since awaitStop.
func stillStopped(t *testing.T, c *exec.Cmd) {
	t.Helper()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED|syscall.WCONTINUED|syscall.WNOHANG, nil)
	if pid != 0 || err != nil {
		t.Fatalf("the process is no longer stopped: %v, %v", status, err)
	}
}

// A process that stops between JoinSQL and COMMIT holds the outbox counter. The other
// writers continue while it is still stopped.
func TestAProcessThatStopsBeforeItsCommitStopsOthersForABoundedTime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		createUser(t, eng, "ann")
		child := startFrozen(t, "joined", db)
		awaitStop(t, child)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := eng.Update(ctx, unitWith("short", false))
		locked := enginetest.As[*fault.Locked](t, err)
		if locked.Lock != "outbox counter" || !strings.Contains(locked.Holder, "session ") {
			t.Errorf("the error is %v", err)
		}
		for _, open := range []bool{false, true} {
			update(t, eng, unitWith(fmt.Sprint("patient", open), open))
			t.Logf("open=%v: committed %v after the process had stopped", open, time.Since(begun))
		}
		stillStopped(t, child)
		if n := len(entries(t, eng)); n != 3 {
			t.Errorf("there are %d entries", n)
		}
		sound(t, eng)
	})
}

// A process that stops at any time while it commits groups holds up others only for a
// bounded time.
func TestAProcessThatStopsInAGroupStopsOthersForABoundedTime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db enginetest.Database) {
		eng := openBlog(t, db)
		createUser(t, eng, "ann")
		child := startFrozen(t, "group", db)
		longest := time.Duration(0)
		for round := range 10 * enginetest.Soak() {
			enginetest.NoError(t, child.Process.Signal(syscall.SIGSTOP))
			begun := time.Now()
			update(t, eng, func(tx *perdure.Tx) error {
				_, err := tx.Create(users, schema.Values{"id": fmt.Sprint("round", round), "name": fmt.Sprint("round", round)})
				return err
			})
			longest = max(longest, time.Since(begun))
			enginetest.NoError(t, child.Process.Signal(syscall.SIGCONT))
		}
		t.Logf("the longest wait was %v", longest)
		enginetest.NoError(t, child.Process.Kill())
		sound(t, eng)
	})
}

// SQLite cannot end the transaction of a process that has stopped. The writers return with
// their contexts, and the error names the process. On Linux, where the state of the process is
// known, they do not wait longer than on other databases.
func TestAStoppedWriterOfSQLiteIsNamed(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	child := startFrozen(t, "joined", db)
	awaitStop(t, child)
	for _, open := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		locked := enginetest.As[*fault.Locked](t, eng.Update(ctx, unitWith("short", open)))
		if want := fmt.Sprintf("process %d", child.Process.Pid); runtime.GOOS == "linux" && !strings.HasPrefix(locked.Holder, want) {
			t.Errorf("the error is %v, want %s", locked, want)
		}
		t.Log(locked)
	}
	for i, open := range []bool{false, true} {
		if runtime.GOOS != "linux" {
			break
		}
		begun := time.Now()
		locked := enginetest.As[*fault.Locked](t, eng.Update(context.Background(), unitWith(fmt.Sprint("endless", i), open)))
		t.Logf("open=%v: %v after %v", open, locked, time.Since(begun))
		if !strings.HasSuffix(locked.Holder, "which is stopped") || errors.Is(locked, context.DeadlineExceeded) {
			t.Errorf("the error is %v", locked)
		}
	}
	enginetest.NoError(t, child.Process.Kill())
	enginetest.Eventually(t, "the system releases the lock of the process", func() bool {
		return eng.Update(context.Background(), unitWith("patient", false)) == nil
	})
	sound(t, eng)
}
