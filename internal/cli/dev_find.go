package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// devData is the default file of perdure dev. devURL is the name of a file in the same
// directory. It has the address of the process while it runs.
const (
	devData = "data/dev.db"
	devURL  = "dev.url"
)

// devProbe is the maximum time for the response of a running perdure dev.
const devProbe = 2 * time.Second

// announce writes the address of this process for commands that are run in the same
// directory. The returned function removes it.
func announce(dir, url string) (remove func() error, err error) {
	file := filepath.Join(dir, devURL)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory of samples: %w", err)
	}
	if err := os.WriteFile(file, []byte(url+"\n"), 0o644); err != nil { //nolint:gosec // an address is no secret
		return nil, fmt.Errorf("write address of perdure dev: %w", err)
	}
	return func() error {
		content, err := os.ReadFile(file) //nolint:gosec // the name is a constant
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(content)) != url {
			return nil // another process has replaced it
		}
		return errors.Join(err, os.Remove(file))
	}, nil
}

// runningDev returns a client of the perdure dev that runs in this directory, or nil if there
// is none. Only a command line that names neither a database nor a server looks for it.
func (a *app) runningDev(ctx context.Context) *client {
	if a.dsn != "" || a.server != "" {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(filepath.Dir(devData), devURL))
	if err != nil {
		return nil
	}
	c, err := a.client(strings.TrimSpace(string(content)))
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, devProbe)
	defer cancel()
	var clock struct {
		Speed *float64 `json:"speed"`
	}
	if err := c.get(ctx, "/v1/dev/clock", nil, &clock); err != nil || clock.Speed == nil {
		return nil // the process was killed, or the address belongs to another program
	}
	fmt.Fprintf(a.err, "perdure: using perdure dev at %s\n", c.base)
	return c
}

// devClient returns a client of the perdure dev that --server names, that runs in this
// directory, or that has the default address.
func (a *app) devClient(ctx context.Context) (*client, error) {
	if a.server == "" {
		if c := a.quietly().runningDev(ctx); c != nil {
			return c, nil
		}
	}
	return a.client(defaultServer)
}

// quietly returns the app without a database, and without messages about the server.
func (a *app) quietly() *app {
	return &app{env: a.env, out: a.out, err: io.Discard, bearer: a.bearer, reason: a.reason}
}
