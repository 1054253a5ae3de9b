package testdb

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain's process plays the victim when this variable is set.
const victimVariable = "PERDURE_TESTDB_VICTIM"

// TestVictim starts a server, tells its process id and waits to be killed. It
// does nothing unless another test runs it.
func TestVictim(*testing.T) {
	engine := os.Getenv(victimVariable)
	if engine == "" {
		return // only run by TestAServerDiesWithItsKilledProcess
	}
	s, err := Start(Config{Engine: Engine(engine)})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("pid", s.PID())
	select {}
}

func TestAServerDiesWithItsKilledProcess(t *testing.T) {
	t.Parallel()
	for _, engine := range []Engine{PostgreSQL, MariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			_, err := findProgram(Config{Engine: engine})
			require(t, err)
			pid := killedVictim(t, engine)
			deadline := time.Now().Add(30 * time.Second)
			for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && !isZombie(pid) {
				if time.Now().After(deadline) {
					t.Fatalf("server %d outlives its killed process", pid)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// killedVictim runs TestVictim in a process of its own, kills that process, and
// returns the id of the server that it had started.
func killedVictim(t *testing.T, engine Engine) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimVariable+"="+string(engine))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "pid %d", &pid); err != nil && strings.HasPrefix(lines.Text(), "error") {
			t.Fatal(lines.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	if pid == 0 {
		t.Fatal("the victim did not tell its server")
	}
	return pid
}

// isZombie says that the process has exited and only waits for its new parent
// to ask how; in a container there may be no parent that asks.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(after, "Z")
}
