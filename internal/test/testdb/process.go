package testdb

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a running server program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has exited
	err  error         // how it exited; readable when done is closed
}

// startProcess runs args with its output in dir's log. On Linux the program receives the
// signal death when this process dies. Linux ties that to the thread that started the
// program, so one thread is kept while the program runs.
func startProcess(dir *directory, args []string, death syscall.Signal) (*process, error) {
	log, err := os.OpenFile(dir.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: command(dir, args), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	dieWithParent(p.cmd.SysProcAttr, death)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(p.done)
		err := p.cmd.Start()
		_ = log.Close() // the program has its own descriptor
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// end signals the program and waits until it has exited. A program that takes longer than
// timeout is killed, and end returns an error.
func (p *process) end(signal syscall.Signal, timeout time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !isGone(err) {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s on %v and was killed", p.cmd.Path, timeout, signal)
	}
}

// command returns a command that runs in dir as dir's owner, in its own process group. So
// an interrupt from a terminal reaches the tests first, and they stop their servers.
func command(dir *directory, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ended by explicit signals
	cmd.Dir = dir.path
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	ownGroup(cmd.SysProcAttr)
	dir.owner.apply(cmd.SysProcAttr)
	return cmd
}

// runTool runs a program to completion and returns its output with the error.
func runTool(dir *directory, args []string) error {
	out, err := command(dir, args).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", args[0], err, tail(out))
	}
	return nil
}

// freePort returns a port of 127.0.0.1 on which no process listens now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns immediately
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
