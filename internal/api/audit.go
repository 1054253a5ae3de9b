package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/inspect"
)

// AuditEntry records one act of an operator or a token on one resource.
type AuditEntry struct {
	ID        string          `json:"id"`
	At        Time            `json:"at"`
	Action    string          `json:"action" doc:"The operation, by its id in this document." example:"cancel-instance"`
	Kind      string          `json:"kind" doc:"What it was done to." example:"instances"`
	Target    string          `json:"target" doc:"The id of that."`
	Principal string          `json:"principal" doc:"The token that did it, or local, or the user of a command." example:"token:0198…"`
	Name      string          `json:"name" doc:"The name of the token."`
	Role      string          `json:"role"`
	Via       string          `json:"via" enum:"http,dashboard,socket,cli,system" doc:"How it was done. A client can claim to be the command line."`
	Address   string          `json:"address,omitempty" doc:"From where."`
	Request   string          `json:"request,omitempty" doc:"The id of the request, as the answer and the log have it."`
	Reason    string          `json:"reason,omitempty" doc:"What the operator gave as the reason."`
	Input     json.RawMessage `json:"input,omitempty" doc:"What was asked for. It has the sizes of payloads, not the payloads."`
	Before    json.RawMessage `json:"before,omitempty" doc:"The thing before."`
	After     json.RawMessage `json:"after,omitempty" doc:"The thing after, or the result."`
	Chain     int             `json:"chain" doc:"The chain that the entry is in."`
	Seq       int64           `json:"seq" doc:"Its place in the chain."`
	Hash      string          `json:"hash" doc:"Of the entry and of all before it in the chain."`
}

// ShowAudit returns an entry as the API and the command line show it.
func ShowAudit(e audit.Entry) AuditEntry {
	return AuditEntry{
		ID: e.ID, At: Time(e.At), Action: e.Action, Kind: e.Kind, Target: e.Target, Principal: e.Principal, Name: e.Label, Role: e.Role, Via: e.Via,
		Address: e.Address, Request: e.Request, Reason: e.Reason, Input: document(e.Input), Before: document(e.Before), After: document(e.After),
		Chain: e.Chain, Seq: e.Seq, Hash: e.HashText(),
	}
}

// document returns the value of a column that contains JSON or nothing.
func document(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

type auditFilter struct {
	Paging
	Action    string    `query:"action" maxLength:"128" doc:"Those of one operation."`
	Kind      string    `query:"kind" maxLength:"64" doc:"Those on things of one kind."`
	Target    string    `query:"target" maxLength:"1024" doc:"Those on one thing; needs a kind."`
	Principal string    `query:"principal" maxLength:"128" doc:"Those of one token: token: and its id."`
	Since     time.Time `query:"since" doc:"Those from this time on."`
	Until     time.Time `query:"until" doc:"Those before this time."`
}

func (a *API) listAudit(ctx context.Context, in *auditFilter) (*List[AuditEntry], error) {
	f := inspect.AuditFilter{Action: in.Action, Kind: in.Kind, Target: in.Target, Principal: in.Principal, Since: in.Since.UTC(), Until: in.Until.UTC()}
	entries, next, err := a.inspect.Audit(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), entries, next, ShowAudit), nil
}
