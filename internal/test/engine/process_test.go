package engine_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// child is what the test binary does as another process.
func child(role string) int {
	if act := frozen[role]; act != nil {
		if err := act(enginetest.Database{Name: os.Getenv("PERDURE_TEST_DATABASE"), DSN: os.Getenv("PERDURE_TEST_DSN")}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if role != "open" {
		fmt.Println("unknown role", role)
		return 2
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is the start
	if err := openAndWrite(os.Getenv("PERDURE_TEST_DSN"), os.Getenv("PERDURE_TEST_ID")); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestEightProcessesCanOpenAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		db = enginetest.Empty(t, db.Name)
		var children [8]*exec.Cmd
		var outputs [8]strings.Builder
		var starts [8]io.WriteCloser
		for i := range children {
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), "PERDURE_TEST_ROLE=open", "PERDURE_TEST_DSN="+db.DSN, fmt.Sprint("PERDURE_TEST_ID=", i))
			c.Stdout, c.Stderr = &outputs[i], &outputs[i]
			in, err := c.StdinPipe()
			enginetest.NoError(t, err)
			enginetest.NoError(t, c.Start())
			children[i], starts[i] = c, in
		}
		for _, start := range starts {
			enginetest.NoError(t, start.Close())
		}
		for i, c := range children {
			if err := c.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, outputs[i].String())
			}
		}
		checkEight(t, db)
	})
}
