//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestTheExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 128 + 9} {
		code, err := runCommand([]string{"sh", "-c", script}, nil, nil)
		if code != want || err != nil {
			t.Errorf("%s: code %d, error %v; want %d", script, code, err, want)
		}
	}
	if code, err := runCommand([]string{"./no-such-command"}, nil, nil); code != notRun || err == nil {
		t.Errorf("no such command: code %d, error %v; want %d and an error", code, err, notRun)
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	signals := make(chan os.Signal, 1)
	go func() {
		for deadline := time.Now().Add(testdb.Patience); time.Now().Before(deadline); <-time.After(time.Millisecond) {
			if _, err := os.Stat(ready); err == nil {
				break
			}
		}
		signals <- syscall.SIGTERM
	}()
	script := `trap 'exit 9' TERM; : > "` + ready + `"; while :; do sleep 0.01; done`
	if code, err := runCommand([]string{"sh", "-c", script}, nil, signals); code != 9 || err != nil {
		t.Errorf("code %d, error %v; want 9, the trap's", code, err)
	}
}

// TestACommandFindsServersAndTheyEndWithIt runs the whole program, as make does.
func TestACommandFindsServersAndTheyEndWithIt(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "run")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	postgres := testdb.Config{Engine: testdb.PostgreSQL, Durable: true}.Variable()
	cmd := exec.CommandContext(t.Context(), program, "--", "sh", "-c", `echo "url=$`+postgres+`"; exit 3`)
	cmd.Env = withoutServers(os.Environ())
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "was not found: install") && os.Getenv("PERDURE_REQUIRE_SERVERS") != "1" {
		t.Skipf("\n\n    *** SKIPPED, NOT TESTED ***\n    %s", out)
	}
	if cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("exit: %v, want 3\n%s", err, out)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(string(out)), "url=")
	db, err := testdb.Open(url)
	if err != nil {
		t.Fatalf("%q: %v", url, err)
	}
	defer db.Close()
	if db.PingContext(t.Context()) == nil {
		t.Errorf("%s outlives the command", url)
	}
}

func withoutServers(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "PERDURE_TEST_") {
			kept = append(kept, v)
		}
	}
	return kept
}
