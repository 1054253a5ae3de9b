package cli

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
)

// asksServer reports whether the command is for a server. --server names it, or the
// environment does if the command line names no database.
func (a *app) asksServer() bool {
	return a.server != "" && (!a.fromEnv["server"] || a.dsn == "" || a.fromEnv["dsn"])
}

// operate runs fn on the API of a server, or of the database within this process. If the
// command line names neither, it uses a perdure dev that runs in this directory.
func (a *app) operate(ctx context.Context, fn func(*client) error) error {
	return a.operateWith(ctx, func(*perdure.Engine) (*actor.Actors, error) { return nil, nil }, fn)
}

// operateWith is like operate, with the actors for the API of the database. A server has
// its own actors.
func (a *app) operateWith(ctx context.Context, actors func(*perdure.Engine) (*actor.Actors, error), fn func(*client) error) error {
	if a.asksServer() {
		c, err := a.client("")
		if err != nil {
			return err
		}
		return fn(c)
	}
	if c := a.runningDev(ctx); c != nil {
		return fn(c)
	}
	if a.dsn == "" {
		return usagef("database is required: set --dsn or PERDURE_DATABASE_URL (example: sqlite:app.db), or --server (example: %s); perdure dev is not running in this directory", defaultServer)
	}
	return a.view(ctx, func(eng *perdure.Engine) error {
		known, err := actors(eng)
		if err != nil {
			return err
		}
		return a.withLocalClient(eng, known, fn)
	})
}
