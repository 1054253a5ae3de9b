// Command perdure runs and inspects durable work on SQL databases.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/perdure/perdure/internal/cli"
)

// hangups catches the signal that asks services to reload their files.
func hangups() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(&cli.Interrupted{Signal: <-signals})
		signal.Stop(signals) // a second signal ends the process immediately
	}()
	os.Exit(cli.Run(cli.WithHangups(ctx, hangups), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
