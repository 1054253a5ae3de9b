package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/pull"
)

// codeSession is the code of a problem: the worker must open another session.
const codeSession = "session_gone"

// workers returns the broker of this process.
func (a *API) workers() (*pull.Broker, error) {
	if a.config.Workers == nil {
		return nil, NewProblem(http.StatusNotFound, codeNotFound, "this process serves no workers")
	}
	return a.config.Workers, nil
}

// workerProblem returns the response to an error of the broker.
func workerProblem(err error) error {
	if errors.Is(err, pull.ErrSession) {
		return NewProblem(http.StatusNotFound, codeSession, "the session does not exist: open another one")
	}
	return err
}

// WorkerServes names work that a worker does.
type WorkerServes struct {
	Kind      string   `json:"kind" enum:"step,hook,alarm" doc:"Kind of work."`
	Machine   string   `json:"machine,omitempty" maxLength:"128" doc:"For steps: the state machine."`
	Version   int      `json:"version,omitempty" minimum:"0" maximum:"2147483647" doc:"For steps: the version of the machine. Default: 1."`
	Queue     string   `json:"queue,omitempty" maxLength:"128" doc:"For steps: the queue of new instances of the machine. Default: the name of the machine."`
	OnCancel  string   `json:"on_cancel,omitempty" maxLength:"128" doc:"For steps: the step that runs when an instance is cancelled."`
	Namespace string   `json:"namespace,omitempty" maxLength:"128" doc:"For hooks: the namespace."`
	Names     []string `json:"names" minItems:"1" maxItems:"1000" doc:"Names of steps, hooks or types of alarms. The first step of a new machine is its first name."`
}

// WorkerHello opens a session.
type WorkerHello struct {
	Protocol int            `json:"protocol" minimum:"0" maximum:"1000" doc:"Version of the protocol: 1."`
	Name     string         `json:"name,omitempty" maxLength:"128" doc:"Name of the worker, for messages."`
	SDK      string         `json:"sdk,omitempty" maxLength:"128" doc:"Name and version of the library of the worker."`
	Slots    int            `json:"slots,omitempty" minimum:"0" maximum:"10000" doc:"Number of work items that run concurrently. Default: 1."`
	Lease    Duration       `json:"lease,omitempty" doc:"Time after which a worker without a heartbeat has crashed. Default: 30 s."`
	Serves   []WorkerServes `json:"serves" minItems:"1" maxItems:"1000"`
}

// WorkerWelcome is the response to WorkerHello.
type WorkerWelcome struct {
	Protocol int             `json:"protocol"`
	Session  string          `json:"session"`
	Lease    Duration        `json:"lease" doc:"Time after which a worker without a heartbeat has crashed."`
	Beat     Duration        `json:"beat" doc:"Interval of heartbeats."`
	Hold     Duration        `json:"hold" doc:"Longest time for which an exchange waits for work."`
	Batch    int             `json:"batch" doc:"Largest number of outcomes or work items in an exchange."`
	MaxBody  int64           `json:"max_body" doc:"Largest body of a request in bytes."`
	Refused  []WorkerRefusal `json:"refused" doc:"Entries of serves that are not served."`
}

// WorkerRefusal is an entry of serves that is not served.
type WorkerRefusal struct {
	Serves int    `json:"serves" doc:"Index in serves."`
	Code   string `json:"code" enum:"forbidden,invalid,unavailable"`
	Detail string `json:"detail"`
}

func (a *API) openWorkerSession(ctx context.Context, in *struct{ Body WorkerHello }) (*One[WorkerWelcome], error) {
	workers, err := a.workers()
	if err != nil {
		return nil, err
	}
	if in.Body.Protocol != pull.Protocol {
		return nil, NewProblem(http.StatusUpgradeRequired, codeInvalid, "the protocol "+strconv.Itoa(in.Body.Protocol)+" is not supported: the server speaks 1")
	}
	h := pull.Hello{Name: edge.Message(in.Body.Name), SDK: in.Body.SDK, Slots: in.Body.Slots, Lease: time.Duration(in.Body.Lease)}
	for _, s := range in.Body.Serves {
		h.Serves = append(h.Serves, pull.Serve{
			Kind: s.Kind, Machine: s.Machine, Version: s.Version, Queue: s.Queue, OnCancel: s.OnCancel, Namespace: s.Namespace, Names: s.Names,
		})
	}
	p := requestOf(ctx).principal
	w, err := workers.Open(p.Name, p.Scope, h)
	if err != nil {
		return nil, err
	}
	body := WorkerWelcome{
		Protocol: pull.Protocol, Session: w.Session, Lease: Duration(w.Lease), Beat: Duration(w.Beat), Hold: Duration(w.Hold), Batch: w.Batch,
		MaxBody: a.config.MaxBody, Refused: []WorkerRefusal{},
	}
	for _, r := range w.Refused {
		body.Refused = append(body.Refused, WorkerRefusal{Serves: r.Serves, Code: r.Code, Detail: r.Detail})
	}
	return one(body), nil
}

func (a *API) closeWorkerSession(ctx context.Context, in *ByID) (*struct{}, error) {
	workers, err := a.workers()
	if err != nil {
		return nil, err
	}
	return nil, workerProblem(workers.Close(in.ID, requestOf(ctx).principal.Name))
}

// WorkerOutcome is the outcome of a work item: its token, and fields that depend on the outcome.
type WorkerOutcome map[string]json.RawMessage

// Schema implements huma.SchemaProvider.
func (WorkerOutcome) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: "object", AdditionalProperties: true, Required: []string{"token", "outcome"},
		Properties:  map[string]*huma.Schema{"token": {Type: "string"}, "outcome": {Type: "string"}},
		Description: "Outcome of a work item. The other fields depend on the kind of work and the outcome.",
	}
}

// WorkerExchange sends outcomes and fetches work.
type WorkerExchange struct {
	Session  string          `json:"session" maxLength:"64"`
	Exchange string          `json:"exchange,omitempty" maxLength:"128" doc:"Id of this call. A repeated call with the same id gets the same work."`
	Max      int             `json:"max,omitempty" minimum:"0" maximum:"10000" doc:"Number of free slots."`
	Hold     Duration        `json:"hold,omitempty" doc:"Time to wait for work. A call with outcomes does not wait."`
	Outcomes []WorkerOutcome `json:"outcomes,omitempty" maxItems:"200"`
}

// WorkerAnswer is the response to WorkerExchange.
type WorkerAnswer struct {
	Results []WorkerResult `json:"results" doc:"Results of the outcomes, in their order."`
	Work    []WorkerWork   `json:"work"`
	Cancel  []WorkerCancel `json:"cancel" doc:"Work that must be stopped."`
	State   string         `json:"state" enum:"run,quiet" doc:"With quiet, fetch no work from this server."`
}

// WorkerResult is the result of an outcome.
type WorkerResult struct {
	Token  string `json:"token"`
	Status string `json:"status" enum:"accepted,duplicate,conflict,stale,invalid,pending"`
	Detail string `json:"detail,omitempty"`
}

// WorkerWork is a work item.
type WorkerWork struct {
	Token       string `json:"token"`
	Kind        string `json:"kind" enum:"step,hook,alarm"`
	ID          string `json:"id"`
	Key         string `json:"key" doc:"Idempotency key: the same for every attempt."`
	Name        string `json:"name" doc:"Step, hook or type of the alarm."`
	Attempt     int    `json:"attempt" doc:"Number of this attempt, counted from 1."`
	Crashes     int    `json:"crashes"`
	Traceparent string `json:"traceparent,omitempty"`
	Data        any    `json:"data" doc:"The instance of a step, the payload and times of a hook or an alarm."`
}

// WorkerCancel asks a worker to stop a work item.
type WorkerCancel struct {
	Token  string `json:"token"`
	Reason string `json:"reason" enum:"cancelled,lost,stopping"`
}

func showCancels(all []pull.Cancel) []WorkerCancel {
	shown := make([]WorkerCancel, len(all))
	for i, c := range all {
		shown[i] = WorkerCancel(c)
	}
	return shown
}

func (a *API) exchangeWork(ctx context.Context, in *struct{ Body WorkerExchange }) (*One[WorkerAnswer], error) {
	workers, err := a.workers()
	if err != nil {
		return nil, err
	}
	ask := pull.Ask{
		Session: in.Body.Session, Principal: requestOf(ctx).principal.Name, Exchange: in.Body.Exchange, Max: in.Body.Max, Hold: time.Duration(in.Body.Hold),
	}
	for _, o := range in.Body.Outcomes {
		var token string
		if err := json.Unmarshal(o["token"], &token); err != nil {
			token = ""
		}
		delete(o, "token")
		body, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		ask.Outcomes = append(ask.Outcomes, pull.Outcome{Token: token, Body: body})
	}
	answer, err := workers.Exchange(ctx, ask)
	if err != nil {
		return nil, workerProblem(err)
	}
	body := WorkerAnswer{Results: make([]WorkerResult, len(answer.Results)), Work: make([]WorkerWork, len(answer.Work)), Cancel: showCancels(answer.Cancel), State: answer.State}
	for i, r := range answer.Results {
		body.Results[i] = WorkerResult(r)
	}
	for i, w := range answer.Work {
		body.Work[i] = WorkerWork{
			Token: w.Token, Kind: w.Kind, ID: w.ID, Key: w.Key, Name: w.Name, Attempt: w.Attempt, Crashes: w.Crashes, Traceparent: w.Trace, Data: w.Data,
		}
	}
	return one(body), nil
}

// WorkerBeat is a heartbeat.
type WorkerBeat struct {
	Session string   `json:"session" maxLength:"64"`
	Running []string `json:"running,omitempty" maxItems:"10000" doc:"Tokens of all work items that the worker has."`
}

// WorkerPulse is the response to a heartbeat.
type WorkerPulse struct {
	Lost   []string       `json:"lost" doc:"Tokens of work that was returned or finished. Discard its outcome, unless it was sent."`
	Cancel []WorkerCancel `json:"cancel"`
	State  string         `json:"state" enum:"run,quiet"`
}

func (a *API) beatWorker(ctx context.Context, in *struct{ Body WorkerBeat }) (*One[WorkerPulse], error) {
	workers, err := a.workers()
	if err != nil {
		return nil, err
	}
	p, err := workers.Beat(in.Body.Session, requestOf(ctx).principal.Name, in.Body.Running)
	if err != nil {
		return nil, workerProblem(err)
	}
	return one(WorkerPulse{Lost: append([]string{}, slices.Compact(p.Lost)...), Cancel: showCancels(p.Cancel), State: p.State}), nil
}

// WorkerRelease returns work.
type WorkerRelease struct {
	Session string   `json:"session" maxLength:"64"`
	Tokens  []string `json:"tokens" maxItems:"10000"`
}

func (a *API) releaseWork(ctx context.Context, in *struct{ Body WorkerRelease }) (*struct{}, error) {
	workers, err := a.workers()
	if err != nil {
		return nil, err
	}
	return nil, workerProblem(workers.Release(in.Body.Session, requestOf(ctx).principal.Name, in.Body.Tokens))
}
