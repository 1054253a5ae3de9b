package failpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/failpoint"
)

func TestMain(m *testing.M) {
	if os.Getenv(failpoint.Variable) != "" { // a child of the test below
		for range 3 {
			if err := failpoint.Hit("place"); err != nil {
				os.Exit(1)
			}
			_, _ = os.Stdout.WriteString("x")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSetAndReset(t *testing.T) {
	boom := errors.New("boom")
	if err := failpoint.Hit("a"); err != nil {
		t.Fatal(err)
	}
	reset := failpoint.Set("a", func() error { return boom })
	failpoint.Set("a", func() error { return nil })
	failpoint.Set("a", func() error { return boom }) // the last one holds
	if err := failpoint.Hit("a"); !errors.Is(err, boom) {
		t.Fatalf("hit: %v", err)
	}
	if err := failpoint.Hit("b"); err != nil {
		t.Fatalf("another place: %v", err)
	}
	reset()
	reset()
	if err := failpoint.Hit("a"); err != nil {
		t.Fatalf("after the reset: %v", err)
	}
}

func TestTheVariableKillsAtTheNthHit(t *testing.T) {
	for value, want := range map[string]string{"place:2": "x", "place:9": "xxx", "elsewhere:1": "xxx", "nonsense": "xxx", "place:x": "xxx"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), failpoint.Variable+"="+value, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.Output()
		if string(out) != want {
			t.Errorf("%s: the child wrote %q (%v), want %q", value, out, err, want)
		}
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if killed != strings.HasSuffix(value, ":2") {
			t.Errorf("%s: killed is %v (%v)", value, killed, err)
		}
	}
}
