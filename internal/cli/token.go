package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/auth"
)

func (a *app) token() *cobra.Command {
	return a.group("token", "Manage the tokens that open the server", a.tokenCreate(), a.tokenList(), a.tokenRevoke())
}

// tokenJSON is a token as JSON. Times that are not set are left out.
type tokenJSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Role    auth.Role `json:"role"`
	Created time.Time `json:"created_at"`
	Used    time.Time `json:"last_used_at,omitzero"`
	Expires time.Time `json:"expires_at,omitzero"`
	Revoked time.Time `json:"revoked_at,omitzero"`
}

// access runs fn on the tokens of the database.
func (a *app) access(cmd *cobra.Command, fn func(*auth.Access) error) error {
	return a.view(cmd.Context(), func(eng *perdure.Engine) error {
		access, err := auth.New(eng, nil)
		if err != nil {
			return err
		}
		return fn(access)
	})
}

func (a *app) tokenCreate() *cobra.Command {
	var role string
	var expires ageFlag
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create an API token and print it, this once", Args: cobra.ExactArgs(1),
		Long: "Creates an API token. A viewer reads; an operator also starts, signals, retries and\n" +
			"cancels; an admin may do everything. Only a hash of the token is stored: what is\n" +
			"printed cannot be shown again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var r auth.Role
			if err := r.UnmarshalText([]byte(role)); err != nil {
				return usagef("--role: %v", err)
			}
			return a.access(cmd, func(access *auth.Access) error {
				issued, err := access.Create(cmd.Context(), args[0], r, time.Duration(expires))
				if err != nil {
					return err
				}
				return a.show(map[string]any{"id": issued.ID, "name": args[0], "role": r, "token": issued.Secret}, func(w io.Writer) {
					fmt.Fprintln(w, issued.Secret)
					fmt.Fprintf(a.err, "keep it: it is not shown again (id %s)\n", issued.ID)
				})
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "viewer", "what it may do: viewer, operator or admin")
	cmd.Flags().Var(&expires, "expires", "when it ends by itself, for example 90d; default: never")
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	var actors bool
	var of, cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List API tokens or tokens of actors, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.access(cmd, func(access *auth.Access) error {
				if actors || of != "" {
					return a.listActorTokens(cmd, access, of, cursor, limit)
				}
				tokens, err := access.Tokens(cmd.Context())
				if err != nil {
					return err
				}
				return a.showTokens(tokens)
			})
		},
	}
	cmd.Flags().BoolVar(&actors, "actors", false, "list the tokens of actors, newest first")
	cmd.Flags().StringVar(&of, "actor", "", "list the tokens of one actor: type/id")
	cmd.Flags().StringVar(&cursor, "cursor", "", "of tokens of actors: cursor from the previous page")
	cmd.Flags().IntVar(&limit, "limit", 50, "of tokens of actors: how many, up to 1000")
	return cmd
}

func (a *app) showTokens(tokens []auth.Token) error {
	all := []tokenJSON{}
	rows := [][]string{{"ID", "NAME", "ROLE", "CREATED", "LAST USED", "EXPIRES", "REVOKED"}}
	for _, t := range tokens {
		all = append(all, tokenJSON(t))
		rows = append(rows, []string{
			t.ID, plain(t.Name), t.Role.String(), instant(t.Created), orDash(t.Used), orDash(t.Expires), orDash(t.Revoked),
		})
	}
	return a.show(map[string]any{"data": all}, func(w io.Writer) { table(w, rows) })
}

func orDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return instant(t)
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke <id>", Short: "End an API token and its sessions, or the token of an actor", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.access(cmd, func(access *auth.Access) error {
				if err := access.Revoke(cmd.Context(), args[0]); err != nil {
					return err
				}
				return a.show(map[string]any{"revoked": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "%s is revoked\n", args[0]) })
			})
		},
	}
}
