// Command run runs a command with throwaway database servers:
//
//	go run ./internal/test/testdb/run -- go test ./...
//
// It starts a fast and a durable PostgreSQL and MariaDB. It passes their addresses to the
// command in the variables that package testdb reads, and stops them when the command has
// ended. So all packages of one `go test` share four servers instead of starting their own.
// It exits with the command's code, or with 125 after an error before the command runs.
//
// A server that the environment already names is used unchanged.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"github.com/perdure/perdure/internal/test/testdb"
)

// notRun is the exit code for errors before the command runs.
const notRun = 125

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: run -- command [argument…]") }
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(notRun)
	}
	code, err := run(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run starts the servers, runs the command, stops the servers, and returns the
// command's exit code.
func run(args []string) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)

	servers, err := startServers(missing())
	if err != nil {
		return notRun, err
	}
	defer func() { err = errors.Join(err, closeServers(servers)) }()
	return runCommand(args, environment(servers), signals)
}

// missing returns the kinds of servers that the environment does not name.
func missing() []testdb.Config {
	var all []testdb.Config
	for _, e := range []testdb.Engine{testdb.PostgreSQL, testdb.MariaDB} {
		for _, durable := range []bool{false, true} {
			c := testdb.Config{Engine: e, Durable: durable}
			if os.Getenv(c.Variable()) == "" && os.Getenv(testdb.Config{Engine: e}.Variable()) == "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// startServers starts all kinds concurrently. If one fails, none is left running.
func startServers(kinds []testdb.Config) (map[testdb.Config]*testdb.Server, error) {
	var (
		mu      sync.Mutex
		group   sync.WaitGroup
		errs    []error
		servers = map[testdb.Config]*testdb.Server{}
	)
	for _, c := range kinds {
		group.Go(func() {
			s, err := testdb.Start(c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			servers[c] = s
		})
	}
	group.Wait()
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, closeServers(servers))...)
	}
	return servers, nil
}

func closeServers(servers map[testdb.Config]*testdb.Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// environment returns the variables that name the servers.
func environment(servers map[testdb.Config]*testdb.Server) []string {
	var env []string
	for c, s := range servers {
		env = append(env, c.Variable()+"="+s.URL())
	}
	return env
}

// runCommand runs the command, forwards signals to it, and returns its exit code.
func runCommand(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ended by signals
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	separate(cmd)
	if err := cmd.Start(); err != nil {
		return notRun, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			forward(cmd, s)
		case err := <-done:
			return exitCode(cmd.ProcessState, err)
		}
	}
}

// exitCode returns the exit code of a command. Like in a shell, it is 128 plus the signal's
// number for a command that a signal ended.
func exitCode(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}
