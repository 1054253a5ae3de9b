package cli

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
)

// asksServer reports whether the command is for a server: the one that --server names,
// or that the environment names unless the command line names a database.
func (a *app) asksServer() bool {
	return a.server != "" && (!a.fromEnv["server"] || a.dsn == "" || a.fromEnv["dsn"])
}

// operate runs fn on the API: of a server, or else of the database within this process.
func (a *app) operate(ctx context.Context, fn func(*client) error) error {
	return a.operateWith(ctx, func(*perdure.Engine) (*actor.Actors, error) { return nil, nil }, fn)
}

// operateWith is operate with the actors that the API of the database has. Those of a
// server are its own.
func (a *app) operateWith(ctx context.Context, actors func(*perdure.Engine) (*actor.Actors, error), fn func(*client) error) error {
	if a.asksServer() {
		c, err := a.client("")
		if err != nil {
			return err
		}
		return fn(c)
	}
	return a.view(ctx, func(eng *perdure.Engine) error {
		known, err := actors(eng)
		if err != nil {
			return err
		}
		return a.withLocalClient(eng, known, fn)
	})
}
