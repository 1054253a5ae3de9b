package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
)

func (a *app) token() *cobra.Command {
	return a.group("token", "Create, list and revoke API tokens", a.tokenCreate(), a.tokenList(), a.tokenRevoke())
}

func (a *app) tokenCreate() *cobra.Command {
	var role string
	var expires ageFlag
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create an API token and print it", Args: cobra.ExactArgs(1),
		Long: "Creates an API token. A viewer can read. An operator can also start, signal, retry and\n" +
			"cancel. An admin can do everything. Only a hash of the token is stored: the token is\n" +
			"printed once and cannot be shown again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var r auth.Role
			if err := r.UnmarshalText([]byte(role)); err != nil {
				return usagef("--role: %v", err)
			}
			body := api.NewToken{Name: args[0], Role: role, Good: api.Duration(expires)}
			return a.operate(cmd.Context(), func(c *client) error {
				var issued api.Issued
				if err := c.post(cmd.Context(), "/v1/tokens", body, &issued); err != nil {
					return err
				}
				return a.show(map[string]any{"id": issued.ID, "name": args[0], "role": r, "token": issued.Token}, func(w io.Writer) {
					fmt.Fprintln(w, issued.Token)
					fmt.Fprintf(a.err, "store the token now: it cannot be shown again (id %s)\n", issued.ID)
				})
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "viewer", "role of the token: one of viewer, operator, admin")
	cmd.Flags().Var(&expires, "expires", "time until the token expires, for example 90d (default: without limit)")
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	var actors bool
	var of string
	var p paging
	cmd := &cobra.Command{
		Use: "list", Short: "List API tokens or actor tokens, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case of != "":
				ref, err := parseRef(of)
				if err != nil {
					return err
				}
				return a.actorTokens(cmd, actorPath(ref)+"/tokens", p)
			case actors:
				return a.actorTokens(cmd, "/v1/tokens/actors", p)
			}
			return showList(a, cmd, "/v1/tokens", nil, paging{}, []string{"ID", "NAME", "ROLE", "CREATED", "LAST USED", "EXPIRES", "REVOKED"}, func(t api.Token) []string {
				return []string{t.ID, plain(t.Name), t.Role.String(), moment(t.CreatedAt), orDash(t.LastUsedAt), orDash(t.ExpiresAt), orDash(t.RevokedAt)}
			})
		},
	}
	cmd.Flags().BoolVar(&actors, "actors", false, "list actor tokens, newest first")
	cmd.Flags().StringVar(&of, "actor", "", "actor whose tokens are listed: <type>/<id>")
	p.add(cmd, "actor tokens", 50, 1000)
	return cmd
}

// actorTokens lists actor tokens.
func (a *app) actorTokens(cmd *cobra.Command, path string, p paging) error {
	return showList(a, cmd, path, nil, p, []string{"ID", "ACTOR", "CALLER", "CREATED", "LAST USED", "EXPIRES", "REVOKED"}, func(t api.ActorToken) []string {
		return []string{
			t.ID, plain(t.Actor.Type + "/" + t.Actor.ID), plain(t.Caller.Type + ":" + t.Caller.ID), moment(t.CreatedAt),
			orDash(t.LastUsedAt), orDash(t.ExpiresAt), orDash(t.RevokedAt),
		}
	})
}

func orDash(t api.Time) string {
	if t.IsZero() {
		return "-"
	}
	return moment(t)
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke <id>", Short: "Revoke an API token and its sessions, or an actor token", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), func(c *client) error {
				if err := c.do(cmd.Context(), http.MethodDelete, "/v1/tokens/"+segment(args[0]), nil, nil); err != nil {
					return err
				}
				return a.show(map[string]any{"revoked": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "%s is revoked\n", args[0]) })
			})
		},
	}
}
