package leaktest

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
)

// leakVariable lets a process of this test leave a goroutine running.
const leakVariable = "PERDURE_TEST_LEAK"

func TestMain(m *testing.M) {
	if os.Getenv(leakVariable) != "" {
		go forgotten(make(chan bool))
	}
	Main(m)
}

func forgotten(until chan bool) { <-until }

// A goroutine that runs is found by its stack, and no longer once it has ended.
func TestAGoroutineThatRunsIsFound(t *testing.T) {
	until := make(chan bool)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		forgotten(until)
	}()
	err := find(interval)
	if err == nil || !strings.Contains(err.Error(), "leaktest.forgotten") {
		t.Errorf("found %v", err)
	}
	close(until)
	<-ended
	if err := Find(); err != nil {
		t.Error(err)
	}
}

// Goroutines of the runtime do not count.
func TestGoroutinesOfTheRuntimeAreExpected(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	t.Run("within a test", func(t *testing.T) { // whose parent waits
		if err := Find(); err != nil {
			t.Error(err)
		}
	})
}

// The tests of a package fail if one of them leaves a goroutine running.
func TestTestsThatLeaveAGoroutineFail(t *testing.T) {
	for value, fails := range map[string]bool{"": false, "1": true} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), leakVariable+"="+value)
		out, err := cmd.CombinedOutput()
		if (err != nil) != fails || strings.Contains(string(out), "leaktest.forgotten") != fails {
			t.Errorf("with %q: %v, %s", value, err, out)
		}
	}
}
