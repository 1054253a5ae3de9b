package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure/remote"
)

// RemoteInput is a state machine whose steps are HTTP endpoints.
type RemoteInput struct {
	Version  int          `json:"version" minimum:"1" maximum:"2147483647"`
	Queue    string       `json:"queue,omitempty" maxLength:"128" doc:"Queue of its instances. Default: default."`
	URL      string       `json:"url,omitempty" maxLength:"2048" doc:"URL of steps that have no URL."`
	Steps    []RemoteStep `json:"steps" minItems:"1" maxItems:"200" doc:"Steps. An instance starts with the first step."`
	Retry    *Retry       `json:"retry,omitempty" doc:"Retry policy of steps. Default: 20 attempts within about two days."`
	OnCancel string       `json:"on_cancel,omitempty" maxLength:"128" doc:"Step that runs when an instance is cancelled or passes its deadline. Default: none; the instance is cancelled immediately."`
	Secrets  []string     `json:"secrets,omitempty" maxItems:"2" doc:"Secrets that sign requests and responses by Standard Webhooks. During a rotation there are two, the new one first. Default: the stored secrets; for a new definition, a generated secret."`
}

// RemoteStep is a step behind an HTTP endpoint.
type RemoteStep struct {
	Name    string   `json:"name" maxLength:"128"`
	URL     string   `json:"url,omitempty" maxLength:"2048" doc:"Default: the URL of the definition."`
	Timeout Duration `json:"timeout,omitempty" doc:"Time limit for a response. Default: 30s."`
	Retry   *Retry   `json:"retry,omitempty" doc:"Retry policy of this step. Default: the policy of the definition."`
}

// RemoteDefinition is a stored version of a state machine with remote steps.
type RemoteDefinition struct {
	Name      string       `json:"name"`
	Version   int          `json:"version"`
	Source    string       `json:"source" enum:"http"`
	Queue     string       `json:"queue"`
	Steps     []RemoteStep `json:"steps" nullable:"false"`
	Retry     Retry        `json:"retry"`
	OnCancel  string       `json:"on_cancel,omitempty" doc:"Step that runs when an instance is cancelled or passes its deadline."`
	Secret    string       `json:"secret,omitempty" doc:"Secret that was generated for a new definition. Returned only in this response."`
	CreatedAt Time         `json:"created_at"`
	UpdatedAt Time         `json:"updated_at"`
}

type putDefinitionInput struct {
	ByName
	Replacing
	Body RemoteInput
}

func (a *API) putDefinition(ctx context.Context, in *putDefinitionInput) (*Tagged[RemoteDefinition], error) {
	b := in.Body
	d := remote.Definition{Name: in.Name, Version: b.Version, Queue: b.Queue, URL: b.URL, Retry: b.Retry.policy(), OnCancel: b.OnCancel, Secrets: b.Secrets}
	for _, s := range b.Steps {
		d.Steps = append(d.Steps, remote.Step{Name: s.Name, URL: s.URL, Timeout: time.Duration(s.Timeout), Retry: s.Retry.policy()})
	}
	actOf(ctx).onKey(in.Name, strconv.Itoa(b.Version))
	stored, err := a.config.Remote.PutIf(ctx, d, func(before *remote.Stored) error { return allow(in, before, remoteTag) })
	if err != nil {
		return nil, err
	}
	shown := RemoteDefinition{
		Name: stored.Name, Version: stored.Version, Source: "http", Queue: stored.Queue, Retry: ShowRetry(stored.Retry), OnCancel: stored.OnCancel, Secret: stored.Generated,
		CreatedAt: Time(stored.Created), UpdatedAt: Time(stored.Updated),
	}
	for _, s := range stored.Steps {
		step := RemoteStep{Name: s.Name, URL: shownURL(s.URL), Timeout: Duration(s.Timeout)}
		if !s.Retry.IsZero() {
			policy := ShowRetry(s.Retry)
			step.Retry = &policy
		}
		shown.Steps = append(shown.Steps, step)
	}
	etag, err := remoteTag(&stored)
	return tagged(shown, etag), err
}

// remoteTag returns the ETag of a version of a definition, including its secrets.
func remoteTag(d *remote.Stored) (string, error) { return etagOf(d.Revision) }

type deleteDefinitionInput struct {
	ByName
	Changing
	Version int `query:"version" minimum:"1" maximum:"2147483647" required:"true" doc:"Version to remove."`
}

func (a *API) deleteDefinition(ctx context.Context, in *deleteDefinitionInput) (*struct{}, error) {
	actOf(ctx).onKey(in.Name, strconv.Itoa(in.Version))
	return nil, a.config.Remote.DeleteIf(ctx, in.Name, in.Version, func(before remote.Stored) error { return allow(in, &before, remoteTag) })
}

// shownURL returns a URL without its query, which may contain secrets.
func shownURL(text string) string {
	address, _, query := strings.Cut(text, "?")
	if query {
		return address + "?…"
	}
	return address
}

// remotes returns the state machines whose steps are HTTP endpoints, by name and version.
func (a *API) remotes(ctx context.Context) (map[string]map[int]remote.Stored, error) {
	all, err := a.config.Remote.List(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]remote.Stored{}
	for _, d := range all {
		if found[d.Name] == nil {
			found[d.Name] = map[int]remote.Stored{}
		}
		found[d.Name][d.Version] = d
	}
	return found, nil
}

// unredacted are the routes whose responses are not redacted: programs need them unchanged,
// or their only payloads are definitions.
var unredacted = []string{"list-outbox", "get-statechart", "put-statechart", "exchange-work"}

// redact applies the rules to a response, except for responses to an actor's own callers.
func (a *API) redact(ctx huma.Context, _ string, v any) (any, error) {
	route, _ := ctx.Operation().Metadata["route"].(Route)
	if slices.Contains(unredacted, route.ID) {
		return v, nil
	}
	return a.redactFor(ctx.Context(), v), nil
}

// redactFor applies the rules to a response. An actor token sees everything that the actor
// shows its caller.
func (a *API) redactFor(ctx context.Context, v any) any {
	if requestOf(ctx).principal.Actor != nil {
		return v
	}
	return a.config.Redact.Value(v)
}
