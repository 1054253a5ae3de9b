package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// The variables that make this program a child.
const (
	roleVariable = "PERDURE_TORTURE_ROLE"
	argsVariable = "PERDURE_TORTURE_ARGS"
)

// patience is the time limit for a child to be ready or to end gracefully.
const patience = 4 * time.Minute

// Role is the code of a child. It runs until ctx is done, which happens when the parent
// stops it or dies.
type Role func(ctx context.Context, self *Self) error

// Self is a child's view of itself.
type Self struct {
	args  string
	ready sync.Once
}

// Args decodes the arguments that the parent passed to Start.
func (s *Self) Args(into any) error {
	if err := json.Unmarshal([]byte(s.args), into); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	return nil
}

// Ready notifies the parent that the child is working. Only the first call counts.
func (s *Self) Ready() {
	s.ready.Do(func() { fmt.Println("ready") })
}

// Main runs the role that this process was started for, and exits. In a process that is not
// a child it returns immediately. main or TestMain must call it first.
func Main(roles map[string]Role) {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	if err := play(roles[name], &Self{args: os.Getenv(argsVariable)}); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(role Role, self *Self) error {
	if role == nil {
		return errors.New("no such role")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
		timer := clock.System.NewTimer(patience)
		<-timer.C()
		os.Exit(3) // the parent no longer waits
	}()
	return role(ctx, self)
}

// Child is a process of this program in a role.
type Child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan struct{} // closed when the child is ready
	done   chan struct{} // closed when it has exited
	err    error         // its exit error, when done
	stderr bytes.Buffer  // its output, when done
}

// StartChild starts this program again in a role. The caller ends it by Kill or Stop.
func StartChild(role string, args any) (*Child, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c := &Child{cmd: exec.Command(program), ready: make(chan struct{}), done: make(chan struct{})} //nolint:noctx // ended by Kill or Stop
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, argsVariable+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = &signalWriter{signal: c.ready}, &c.stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// signalWriter closes a channel at the first write.
type signalWriter struct {
	once   sync.Once
	signal chan struct{}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.signal) })
	return len(p), nil
}

// PID returns the id of the child's process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// AwaitReady returns when the child is working. It fails if the child exits before that.
func (c *Child) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		return fmt.Errorf("child exited before it was ready: %w\n%s", c.err, c.stderr.Bytes())
	case <-ctx.Done():
		return fmt.Errorf("child is not ready: %w", ctx.Err())
	}
}

// Kill ends the child like kill -9. It fails if the child had already exited, because it
// should have been working.
func (c *Child) Kill() error {
	select {
	case <-c.done:
		return fmt.Errorf("child exited by itself: %w\n%s", c.err, c.stderr.Bytes())
	default:
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill child: %w", err)
	}
	<-c.done
	return nil
}

// Stop stops the child and returns its exit error.
func (c *Child) Stop() error {
	_ = c.stdin.Close()
	return c.Wait()
}

// Wait returns when the child has exited, with its error.
func (c *Child) Wait() error {
	timer := clock.System.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C():
		return errors.Join(errors.New("child does not stop"), c.Kill())
	}
	if c.err != nil {
		return fmt.Errorf("child: %w\n%s", c.err, c.stderr.Bytes())
	}
	return nil
}
