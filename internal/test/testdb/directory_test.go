//go:build unix

package testdb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweepRemovesOnlyWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	held, err := tryDirectory(parent, PostgreSQL, owner{})
	if err != nil {
		t.Fatal(err)
	}
	abandoned, err := tryDirectory(parent, PostgreSQL, owner{})
	if err != nil {
		t.Fatal(err)
	}
	if err := abandoned.lock.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(parent, directoryPrefix+"without-lock")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	sweepUntilGone(t, parent, abandoned.path)
	for path, want := range map[string]bool{held.path: true, abandoned.path: false, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), err == nil, want)
		}
	}
	if err := held.remove(); err != nil {
		t.Error(err)
	}
}

// sweepUntilGone sweeps more than once: between fork and exec, a program that
// another test starts holds a copy of every lock of ours.
func sweepUntilGone(t *testing.T, parent, path string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		sweep(parent)
		if _, err := os.Stat(path); err != nil {
			return
		}
	}
}

func TestADirectoryClosedToOthersIsPassedOver(t *testing.T) {
	t.Parallel()
	other := owner{uid: 1, gid: 1}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := reachable(other, closed, "/"); err != nil || got != "/" {
		t.Errorf("got %q, %v; want /", got, err)
	}
	if _, err := reachable(other, closed); err == nil {
		t.Error("a closed directory was taken")
	}
	if got, err := reachable(owner{}, closed); err != nil || got == "" {
		t.Errorf("our own directory was refused: %v", err)
	}
}

func TestALockHeldElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := acquire(path); !errors.Is(err, errSwept) {
		t.Errorf("got %v, want %v", err, errSwept)
	}
}
