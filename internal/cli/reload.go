package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/node"
)

type hangupKey struct{}

// WithHangups returns a context in which a signal makes serve reload its files instead of
// ending. listen starts to catch the signals, and stop restores their previous handling.
// Other commands end with their terminal.
func WithHangups(ctx context.Context, listen func() (signals <-chan os.Signal, stop func())) context.Context {
	return context.WithValue(ctx, hangupKey{}, listen)
}

// onHangup calls fn for each signal, until stop is called.
func onHangup(ctx context.Context, fn func()) (stop func()) {
	listen, ok := ctx.Value(hangupKey{}).(func() (<-chan os.Signal, func()))
	if !ok {
		return func() {}
	}
	signals, leave := listen()
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-signals:
				fn()
			case <-end:
				return
			}
		}
	})
	return func() { close(end); done.Wait(); leave() }
}

// reload rereads the files and the settings that can change while the process runs. A value
// that cannot be read keeps its old value.
func (p *process) reload(n *node.Node) {
	err := errors.Join(n.Reload(), p.reloadLog(), p.flags.guards.reload(p.app))
	if err != nil {
		fmt.Fprintf(p.err, "perdure: configuration reload failed: %v\n", err)
		slog.Error("configuration reload failed", "error", err)
		return
	}
	fmt.Fprintln(p.err, "perdure: configuration reloaded")
	slog.Info("configuration reloaded")
}

// reloadLog sets the log level, if the environment sets it, and updates the texts that must
// not be logged.
func (p *process) reloadLog() error {
	s := *p.flags
	if p.fromEnv["log-level"] {
		name, level, err := p.lookup(variables("log-level"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.level = level
	}
	return p.startLog(&s, p.dev)
}

// webhooks sends messages with the secrets that were read last.
type webhooks struct{ sender atomic.Pointer[alarm.Sender] }

// Send implements alarm.Sender.
func (w *webhooks) Send(ctx context.Context, m alarm.Message) error {
	return (*w.sender.Load()).Send(ctx, m)
}

// CheckURL implements alarm.Checker.
func (w *webhooks) CheckURL(url string) error {
	if sender, ok := (*w.sender.Load()).(alarm.Checker); ok {
		return sender.CheckURL(url)
	}
	return nil
}

// reload rereads the secrets of webhooks, if there were any.
func (g *guards) reload(a *app) error {
	if g.webhooks == nil {
		return nil
	}
	sender, err := g.sender(a)
	switch {
	case err != nil:
		return err
	case sender == nil:
		return fmt.Errorf("%s: must not be empty", webhookSecrets)
	}
	g.webhooks.sender.Store(&sender)
	return nil
}
