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
	Action    string          `json:"action" doc:"Operation, by its id in this document." example:"cancel-instance"`
	Kind      string          `json:"kind" doc:"Kind of the target." example:"instances"`
	Target    string          `json:"target" doc:"Id of the target."`
	Principal string          `json:"principal" doc:"API token, local, or the user of a command." example:"token:0198…"`
	Name      string          `json:"name" doc:"Name of the API token."`
	Role      string          `json:"role"`
	Via       string          `json:"via" enum:"http,dashboard,socket,cli,system" doc:"Interface. A client can claim to be the command line."`
	Address   string          `json:"address,omitempty" doc:"Address of the client."`
	Request   string          `json:"request,omitempty" doc:"Id of the request, as in the response and the log."`
	Reason    string          `json:"reason,omitempty" doc:"Reason that the operator gave."`
	Input     json.RawMessage `json:"input,omitempty" doc:"Parameters of the request. It has the sizes of payloads instead of the payloads."`
	Before    json.RawMessage `json:"before,omitempty" doc:"Target before the change."`
	After     json.RawMessage `json:"after,omitempty" doc:"Target after the change, or the result."`
	Chain     int             `json:"chain" doc:"Chain of the entry."`
	Seq       int64           `json:"seq" doc:"Position in the chain."`
	Hash      string          `json:"hash" doc:"Hash of the entry and of all earlier entries of the chain."`
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
	Action    string    `query:"action" maxLength:"128" doc:"Filter by operation."`
	Kind      string    `query:"kind" maxLength:"64" doc:"Filter by kind of target."`
	Target    string    `query:"target" maxLength:"1024" doc:"Filter by id of the target. Requires kind."`
	Principal string    `query:"principal" maxLength:"128" doc:"Filter by principal, for example token:<id>."`
	Since     time.Time `query:"since" doc:"Filter by time: from this time on."`
	Until     time.Time `query:"until" doc:"Filter by time: before this time."`
}

func (a *API) listAudit(ctx context.Context, in *auditFilter) (*List[AuditEntry], error) {
	f := inspect.AuditFilter{Action: in.Action, Kind: in.Kind, Target: in.Target, Principal: in.Principal, Since: in.Since.UTC(), Until: in.Until.UTC()}
	entries, next, err := a.inspect.Audit(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), entries, next, ShowAudit), nil
}
