package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/statechart"
)

// The codes of problems. They are part of the interface and never change.
const (
	codeInvalid      = "invalid"
	codeNotFound     = "not_found"
	codeConflict     = "conflict"
	codeDuplicate    = "duplicate"
	codePrecondition = "precondition_failed"
	codeRestricted   = "restricted"
	codeUncertain    = "uncertain"
	codeUnauthorized = "unauthorized"
	codeForbidden    = "forbidden"
	codeTooLarge     = "too_large"
	codeLimit        = "limit_exceeded"
	codeRateLimited  = "rate_limited"
	codeUnavailable  = "unavailable"
	codeInternal     = "internal"
)

// Problem is the response to a request that was refused or failed (RFC 9457). It is an
// error that handlers may return.
type Problem struct {
	Type     string          `json:"type" doc:"URN of the kind of problem, with its code." example:"urn:perdure:problem:not_found"`
	Title    string          `json:"title" doc:"Text of the HTTP status."`
	Status   int             `json:"status" doc:"HTTP status."`
	Detail   string          `json:"detail,omitempty" doc:"Description of the problem."`
	Instance string          `json:"instance,omitempty" doc:"Id of the request, as in X-Request-Id."`
	Code     string          `json:"code" doc:"Code for programs." enum:"invalid,not_found,conflict,duplicate,precondition_failed,restricted,uncertain,unauthorized,forbidden,too_large,limit_exceeded,rate_limited,unavailable,internal"`
	Errors   []ProblemDetail `json:"errors,omitempty" doc:"Problems of parts of the request."`

	header http.Header
}

// ProblemDetail is one defect of a request.
type ProblemDetail struct {
	Location string `json:"location,omitempty" doc:"Part of the request." example:"body.items[3].name"`
	Message  string `json:"message" doc:"Description of the problem."`
}

// NewProblem returns a problem with a status and a code of the table.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "urn:perdure:problem:" + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
}

func newProblem(status int, code, detail string, req *request) *Problem {
	p := NewProblem(status, code, detail)
	p.Instance = req.id
	return p
}

// RetryAfter adds the header with the time after which a client may retry.
func (p *Problem) RetryAfter(seconds int) *Problem {
	p.header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return p
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func errForbidden(detail string) error {
	return NewProblem(http.StatusForbidden, codeForbidden, detail)
}

// report passes a server error with the id of its request to OnError. The client receives
// the same id, so that an operator can match the two.
func (a *API) report(req *request, err error) {
	req.failed(err)
	a.config.OnError(fmt.Errorf("request %s (%s %s) failed: %w", req.id, req.method, req.route, err))
}

// problem returns the problem that a client receives for an error. Details that the client
// does not receive go to OnError.
func (a *API) problem(req *request, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		response := *p
		response.Instance = req.id
		if p.Status == http.StatusInternalServerError {
			a.report(req, err)
		}
		return &response
	}
	status, code := classify(err)
	detail := err.Error()
	switch code {
	case codeUncertain:
		a.report(req, err)
	case codeInternal:
		a.report(req, err)
		detail = "request failed: see the log of the server for this request id"
	case codeUnavailable:
		req.failed(err)
		detail = "the server is temporarily unavailable"
		if isTrouble(err) {
			a.report(req, err)
			detail = "the database is temporarily unavailable"
		}
		var sealed *seal.SealedError
		if errors.As(err, &sealed) && !sealed.Known {
			detail = fmt.Sprintf("the server does not have the encryption key %q", sealed.Key)
		}
	}
	p = newProblem(status, code, detail, req)
	var invalid *fault.Invalid
	if errors.As(err, &invalid) {
		p.Errors = []ProblemDetail{{Location: invalid.Field, Message: invalid.Reason}}
	}
	var limited *auth.LimitedError
	switch {
	case errors.As(err, &limited):
		p = p.RetryAfter(int(limited.After.Seconds()) + 1)
	case status == http.StatusServiceUnavailable && code != codeUncertain: // a repeated request might have its effect twice
		p = p.RetryAfter(1)
	}
	return p
}

// classify returns the status and code of an error of Perdure.
func classify(err error) (int, string) {
	var tooLarge *http.MaxBytesError
	var restricted *fault.Restricted
	switch {
	case is[*auth.LimitedError](err):
		return http.StatusTooManyRequests, codeRateLimited
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized, codeUnauthorized
	case is[*statechart.LimitError](err):
		return http.StatusUnprocessableEntity, codeLimit
	case is[*actor.ImportError](err): // the stored data is invalid, not the request
		return http.StatusConflict, codeConflict
	case is[*fault.Invalid](err):
		return http.StatusUnprocessableEntity, codeInvalid
	case is[*fault.NotFound](err):
		return http.StatusNotFound, codeNotFound
	case is[*fault.Duplicate](err):
		return http.StatusConflict, codeDuplicate
	case errors.As(err, &restricted) && restricted.Err == nil: // refused because of the sender, not by the database
		return http.StatusForbidden, codeForbidden
	case is[*fault.Restricted](err):
		return http.StatusConflict, codeRestricted
	case is[*fault.Conflict](err), isState(err):
		return http.StatusConflict, codeConflict
	case is[*outbox.GapError](err), is[*outbox.DivergedError](err):
		return http.StatusGone, codeConflict
	case is[*fault.Uncertain](err):
		return http.StatusServiceUnavailable, codeUncertain
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, codeTooLarge
	case is[*seal.SealedError](err): // another process may have the key
		return http.StatusServiceUnavailable, codeUnavailable
	case errors.Is(err, fault.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, codeUnavailable
	case isTrouble(err): // an outage, or conflicts in all attempts; nothing was written
		return http.StatusServiceUnavailable, codeUnavailable
	}
	return http.StatusInternalServerError, codeInternal
}

// isTrouble reports whether a request failed because of the database, not because of its
// statements or its data.
func isTrouble(err error) bool { return sqldb.IsUnavailable(err) || sqldb.IsTransient(err) }

// isState reports whether an error is about something that exists but is in no state for
// the request.
func isState(err error) bool {
	return is[*perdure.StateError](err) || is[*fsm.InboxFullError](err) || is[*actor.QuarantinedError](err) || is[*actor.KeyError](err) || is[*actor.VersionError](err)
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// statusCodes are the codes of problems that occur before a handler runs.
var statusCodes = map[int]string{
	http.StatusRequestEntityTooLarge: codeTooLarge, http.StatusNotFound: codeNotFound, http.StatusInternalServerError: codeInternal,
	http.StatusServiceUnavailable: codeUnavailable, http.StatusRequestTimeout: codeUnavailable,
}

// problems converts huma's errors for a bad request into a Problem. It leaves out the
// values, which may be secret.
func (a *API) problems(ctx huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if model.Status >= http.StatusInternalServerError {
		a.report(requestOf(ctx.Context()), fmt.Errorf("%w: %v", model, model.Errors))
	}
	code, known := statusCodes[model.Status]
	if !known {
		code = codeInvalid
	}
	p := newProblem(model.Status, code, model.Detail, requestOf(ctx.Context()))
	for _, d := range model.Errors {
		if d != nil {
			p.Errors = append(p.Errors, ProblemDetail{Location: d.Location, Message: d.Message + renamedTo(d)})
		}
	}
	return p, nil
}

// renamedTo returns the new status if a filter has an old one.
func renamedTo(d *huma.ErrorDetail) string {
	if old, ok := d.Value.(string); ok && strings.Contains(d.Location, "status") && renamed[old] != "" {
		return fmt.Sprintf("; %q was renamed to %s", old, renamed[old])
	}
	return ""
}

// writeProblem answers a request outside huma.
func writeProblem(w http.ResponseWriter, p *Problem) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="perdure"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected
}
