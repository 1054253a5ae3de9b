package api

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// reasonHeader carries the operator's reason for an action.
const reasonHeader = "Perdure-Reason"

// reasonParameter describes the header for the OpenAPI document.
func reasonParameter() *huma.Param {
	return &huma.Param{
		Name: reasonHeader, In: "header", Schema: &huma.Schema{Type: "string"},
		Description: "Reason of the change, for the audit log. Characters that are not ASCII must be percent-encoded. Up to 1,000 bytes are stored.",
	}
}

// unaudited are the routes that change nothing although their method is not GET, and those of
// workers, whose changes are outcomes of work.
var unaudited = map[string]bool{
	"check-statechart":    true,
	"open-worker-session": true, "close-worker-session": true, "exchange-work": true, "beat-worker": true, "release-work": true,
}

// stateless are the routes whose audit entries have no state before and after. They are
// frequent, and the entry already names what they add.
var stateless = map[string]bool{"signal-instance": true, "send-event": true, "fire-schedule": true, "replay-hook": true}

// changes reports whether the route changes something, so that its requests are written to
// the audit log.
func (r Route) changes() bool { return r.Method != http.MethodGet && !unaudited[r.ID] }

// thing is the target of an act.
type thing struct {
	id string
	// key is the key by which the state of the resource is read. It is nil if the state is not
	// read.
	key           []string
	before, after *store.AuditState
}

// act is the action of a request, to be written to the audit log.
type act struct {
	audit.Act
	api    *API
	things []*thing
	// result returns the response after its statements have run. It is nil as long as there is
	// no response.
	result func() any
}

type actKey struct{}

// actOf returns the act of a request. It is nil for a request that changes nothing.
func actOf(ctx context.Context) *act {
	a, _ := ctx.Value(actKey{}).(*act)
	return a
}

// acting returns the context of a request that changes something. The changes that it
// commits are written to the audit log.
func (a *API) acting(ctx context.Context, r Route, input any) context.Context {
	if !r.changes() {
		return ctx
	}
	req := requestOf(ctx)
	action := r.ID
	if name := audit.ActionOf(ctx); name != "" {
		action = name
	}
	return a.withAct(ctx, req, action, r.auditKind(), req.things(r), a.asked(input))
}

func (a *API) withAct(ctx context.Context, req *request, action, kind string, on []*thing, input string) context.Context {
	t := &act{api: a, things: on}
	t.Entry = audit.Entry{
		At: a.rt.Clock.Now(), Action: action, Kind: kind, Principal: req.principal.Name, Label: req.principal.Label, Role: req.principal.Role.String(),
		Via: req.via, Address: req.address, Request: req.id, Reason: req.reason, Input: input,
	}
	t.NewID, t.Targets, t.ReadBefore, t.ReadAfter = a.rt.NewID, t.targets, t.readBefore, t.readAfter
	return audit.With(context.WithValue(ctx, actKey{}, t), &t.Act)
}

// of sets the kind of the act's targets, if the path of the request does not name it.
func (t *act) of(kind string) {
	if t != nil {
		t.Kind = kind
	}
}

// on sets the targets of the act, if the path of the request does not name them.
func (t *act) on(ids []string) {
	if t == nil {
		return
	}
	t.things = make([]*thing, len(ids))
	for i, id := range ids {
		t.things[i] = &thing{id: id, key: keyOf(t.Kind, id)}
	}
}

// onKey is like on, for one resource whose key has more parts than the path.
func (t *act) onKey(key ...string) {
	if t != nil {
		t.things = []*thing{{id: strings.Join(key, "@"), key: key}}
	}
}

// keyOf returns the key of a resource whose id contains all parts of the key.
func keyOf(kind, id string) []string {
	if kind == "actors" {
		actorType, name, _ := strings.Cut(id, "/")
		return []string{actorType, name}
	}
	return []string{id}
}

// through sets the operation of an act that changes many resources without naming them.
func (t *act) through(operation string) {
	if t != nil {
		t.things = []*thing{{id: operation}}
	}
}

// answers sets the function that returns the response once it is known.
func (t *act) answers(result func() any) {
	if t != nil {
		t.result = result
	}
}

// because sets the reason of the act, unless it has one.
func (t *act) because(reason string) {
	if t != nil && t.Reason == "" {
		t.Reason = audit.Reason(reason)
	}
}

func (t *act) readBefore() []sqldb.Stmt {
	return t.read(func(x *thing, s *store.AuditState) { x.before = s })
}

func (t *act) readAfter() []sqldb.Stmt {
	return t.read(func(x *thing, s *store.AuditState) { x.after = s })
}

func (t *act) read(note func(*thing, *store.AuditState)) (stmts []sqldb.Stmt) {
	if !t.api.rt.Store.HasAudit() {
		return nil
	}
	for _, x := range t.things {
		note(x, nil)
		if stmt, ok := t.api.rt.Store.AuditState(t.Kind, x.key, t.api.rt.Clock.Now(), func(s store.AuditState) { note(x, &s) }); ok {
			stmts = append(stmts, stmt)
		}
	}
	return stmts
}

// targets returns the targets of the act.
func (t *act) targets() []audit.Target {
	var result any
	if t.result != nil {
		result = t.result()
	}
	if made, ok := result.(interface{ made() []string }); ok && t.creates() {
		return targetsOf(made.made(), brief(result, ""))
	}
	var targets []audit.Target
	done, partly := result.(interface{ acted(id string) bool })
	for _, x := range t.things {
		if partly && !done.acted(x.id) {
			continue
		}
		target := audit.Target{ID: x.id, Before: t.api.state(x.before), After: t.api.state(x.after)}
		if x.before == nil && x.after == nil && !partly {
			target.After = brief(result, x.id)
		}
		targets = append(targets, target)
	}
	return targets
}

// creates reports whether the path names no target of the act.
func (t *act) creates() bool { return len(t.things) == 1 && t.things[0].id == "" }

func targetsOf(ids []string, after json.RawMessage) []audit.Target {
	targets := make([]audit.Target, len(ids))
	for i, id := range ids {
		targets[i] = audit.Target{ID: id}
		if len(ids) == 1 {
			targets[i].After = after
		}
	}
	return targets
}

// brief returns the part of a response that is written to the audit log. It returns nothing
// for a response that only repeats the id of the resource.
func brief(result any, id string) json.RawMessage {
	if shown, ok := result.(interface{ brief() any }); ok {
		result = shown.brief()
	}
	if acted, ok := result.(Acted); result == nil || ok && acted.ID == id {
		return nil
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil
	}
	return raw
}

// state returns the state of a resource that the audit log shows.
func (a *API) state(s *store.AuditState) json.RawMessage {
	if s == nil {
		return nil
	}
	shown := struct {
		*store.AuditState
		Spec json.RawMessage `json:"spec,omitempty"`
	}{AuditState: s}
	if s.Spec != nil {
		shown.Spec = a.config.Redact.JSON(hideQueries(json.RawMessage(*s.Spec)))
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		return nil // a spec that is not JSON is not shown
	}
	return raw
}

// place records the origin of a request, for the audit log.
func (q *request) place(r *http.Request) {
	q.address = r.RemoteAddr
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		q.address = host
	}
	q.via = "http"
	switch _, err := r.Cookie(auth.CookieName); {
	case strings.HasPrefix(r.UserAgent(), "perdure/"):
		q.via = "cli"
	case err == nil && r.Header.Get("Authorization") == "" || r.Header.Get("Sec-Fetch-Site") == "same-origin":
		q.via = "dashboard"
	}
	q.reason = reasonOf(r.Header.Get(reasonHeader))
	q.path, q.http = r.PathValue, r
}

// reasonOf reads a reason, which may be percent-encoded.
func reasonOf(header string) string {
	if text, err := url.PathUnescape(header); err == nil {
		header = text
	}
	return audit.Reason(header)
}

// things returns the targets that the path of the request names.
func (q *request) things(r Route) []*thing {
	var key []string
	for _, name := range []string{"type", "id", "name", "key"} {
		if value := q.pathValue(name); value != "" && strings.Contains(r.Path, "{"+name+"}") {
			key = append(key, value)
		}
	}
	if len(key) == 0 {
		return []*thing{{}}
	}
	named := &thing{id: strings.Join(key, "/"), key: key}
	if stateless[r.ID] {
		named.key = nil
	}
	return []*thing{named}
}

func (q *request) pathValue(name string) string {
	if q.path == nil {
		return ""
	}
	return strings.ToValidUTF8(strings.ReplaceAll(q.path(name), "\x00", ""), "\uFFFD")
}

// auditKind returns the kind of the route's targets.
func (r Route) auditKind() string {
	switch {
	case strings.Contains(r.Path, "/timers/"):
		return "timers"
	case r.tag() == "session":
		return "sessions"
	}
	return r.tag()
}
