package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/auth"
)

// maxTokens is the largest page of tokens of actors.
const maxTokens = 1000

// actorTokenJSON is the token of an actor as JSON. Times that are not set are left out.
type actorTokenJSON struct {
	ID      string    `json:"id"`
	Actor   string    `json:"actor"`
	Caller  string    `json:"caller"`
	Created time.Time `json:"created_at"`
	Used    time.Time `json:"last_used_at,omitzero"`
	Expires time.Time `json:"expires_at,omitzero"`
	Revoked time.Time `json:"revoked_at,omitzero"`
}

// listActorTokens shows the tokens of an actor, or of all actors if of is empty.
func (a *app) listActorTokens(cmd *cobra.Command, access *auth.Access, of, cursor string, limit int) error {
	var ref actor.Ref
	if of != "" {
		var err error
		if ref, err = parseRef(of); err != nil {
			return err
		}
	}
	if limit < 1 || limit > maxTokens {
		return usagef("--limit: must be between 1 and %d, got %d", maxTokens, limit)
	}
	tokens, next, err := access.ActorTokens(cmd.Context(), ref.Type, ref.ID, cursor, limit)
	if err != nil {
		return err
	}
	page := struct {
		Data []actorTokenJSON `json:"data"`
		Next string           `json:"next_cursor,omitempty"`
	}{Data: []actorTokenJSON{}, Next: next}
	rows := [][]string{{"ID", "ACTOR", "CALLER", "CREATED", "LAST USED", "EXPIRES", "REVOKED"}}
	for _, t := range tokens {
		of, caller := t.Scope.Type+"/"+t.Scope.ID, t.Scope.CallerKind+":"+t.Scope.CallerID
		page.Data = append(page.Data, actorTokenJSON{ID: t.ID, Actor: of, Caller: caller, Created: t.Created, Used: t.Used, Expires: t.Expires, Revoked: t.Revoked})
		rows = append(rows, []string{t.ID, plain(of), plain(caller), instant(t.Created), orDash(t.Used), orDash(t.Expires), orDash(t.Revoked)})
	}
	return a.show(page, func(w io.Writer) { pageTable(w, rows, next) })
}
