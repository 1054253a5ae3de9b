package task

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// The functions of comms for SQLite. They have the same names and behavior as the
// functions in the PostgreSQL migration; the conformance suite compares them.

const (
	// maxAttempts is the maximum number of attempts to send a message.
	maxAttempts = 2
	// maxRuns is the maximum number of runs of a supervisor.
	maxRuns = 50
	// firstLook and lastLook are the shortest and the longest delay between two runs of
	// a supervisor.
	firstLook = 5 * time.Second
	lastLook  = 10 * time.Minute
)

var commsFunctions = channelFunctions("email", channelFunctions("sms", map[string]Function{}))

// channel is email or sms.
type channel string

func channelFunctions(c channel, all map[string]Function) map[string]Function {
	all["comms.send_"+string(c)+"_supervisor"] = c.supervise
	all["comms.get_"+string(c)+"_payload"] = c.prepare
	all["comms.record_"+string(c)+"_success"] = c.succeed
	all["comms.record_"+string(c)+"_failure"] = c.fail
	return all
}

// id is the name of the payload field with the id of the send.
func (c channel) id() string { return "send_" + string(c) + "_task_id" }

// payload has the fields that the functions of comms read.
type payload struct {
	fields   map[string]json.RawMessage
	original map[string]json.RawMessage
}

func readPayload(raw json.RawMessage) (p payload) {
	_ = json.Unmarshal(raw, &p.fields) // a payload that is not an object has no fields
	if json.Unmarshal(p.fields["original_payload"], &p.original) != nil || p.original == nil {
		p.original = p.fields
	}
	return p
}

// number returns an integer field of a payload, or 0 if there is none.
func number(fields map[string]json.RawMessage, name string) int64 {
	text := string(fields[name])
	if quoted, err := strconv.Unquote(text); err == nil {
		text = quoted
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || len(text) > 18 {
		return 0
	}
	return n
}

// facts reads the facts of a send; ok is false if there is no such send.
func (c channel) facts(tx *perdure.Tx, id int64) (f store.SendFacts, ok bool, err error) {
	rt := host.In(tx).Runtime()
	err = run(tx, rt.Store.ReadSendFacts(string(c), id, rt.Now(), func(found store.SendFacts) { f, ok = found, true }))
	return f, ok, err
}

// supervise reads the facts of a send and decides: the send is finished, an attempt is
// started, or the supervisor only runs again later.
func (c channel) supervise(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (Envelope, error) {
	p := readPayload(raw)
	id, runs, idle := number(p.fields, c.id()), number(p.fields, "run_count")+1, number(p.fields, "idle_runs")+1
	if id == 0 {
		return Refuse("missing_%s", c.id())
	}
	f, ok, err := c.facts(tx, id)
	switch {
	case err != nil:
		return Envelope{}, err
	case !ok:
		return Refuse("send_%s_task_not_found", c)
	case f.Succeeded:
		return OK(nil)
	}
	if f.Attempt != 0 && (f.Over || runs > maxRuns) {
		if err := c.giveUp(tx, id, &f, runs > maxRuns); err != nil {
			return Envelope{}, err
		}
	}
	switch {
	case runs > maxRuns:
		return Refuse("run_cap_reached for send_%s_task %d", c, id)
	case f.Failures >= maxAttempts || f.Refused:
		return OK(nil)
	case f.Scheduled <= f.Failures:
		idle = 0
		if err := c.schedule(tx, id, int64(f.Failures)+1); err != nil {
			return Envelope{}, err
		}
	}
	return c.lookAgain(tx, id, runs, idle, int64(f.Failures))
}

// giveUp counts an attempt without outcome as failed. A worker that still runs the
// attempt can no longer record an outcome.
func (c channel) giveUp(tx *perdure.Tx, id int64, f *store.SendFacts, capped bool) error {
	rt := host.In(tx).Runtime()
	message := "attempt ended without an outcome"
	if capped {
		message = "run cap reached"
	}
	f.Failures++
	stmts := rt.Store.CancelTask(f.Task, rt.Now(), new(int64))
	return run(tx, append(stmts, rt.Store.FailAttempt(string(c), id, f.Attempt, message, capped, rt.Now()))...)
}

// schedule starts an attempt.
func (c channel) schedule(tx *perdure.Tx, id, attempt int64) error {
	rt := host.In(tx).Runtime()
	ticket, err := EnqueueIn(tx, string(c), map[string]any{
		"task_type": c, c.id(): id, "attempt": attempt, "before_handler": "comms.get_" + c + "_payload",
		"success_handler": "comms.record_" + c + "_success", "error_handler": "comms.record_" + c + "_failure",
	}, nil)
	if err != nil {
		return err
	}
	if err := host.In(tx).Flush(); err != nil { // sets the ticket's ID
		return err
	}
	n, err := numberOf(ticket.ID)
	if err != nil {
		return err
	}
	return run(tx, rt.Store.ScheduleAttempt(string(c), id, attempt, n, rt.Now()))
}

// lookAgain enqueues the supervisor again, with the fields that it reads. The delay is
// 5 seconds after it has started the first attempt. It doubles after each failure, and
// each time the supervisor finds nothing new.
func (c channel) lookAgain(tx *perdure.Tx, id, runs, idle, failures int64) (Envelope, error) {
	again := map[string]any{
		"task_type": functionType, "db_function": "comms.send_" + c + "_supervisor", c.id(): id, "run_count": runs, "idle_runs": idle,
	}
	delay := min(firstLook<<min(failures+idle, 20), lastLook)
	if _, err := EnqueueIn(tx, functionType, again, &EnqueueOptions{Delay: delay}); err != nil {
		return Envelope{}, err
	}
	return OK(nil)
}

// prepare is the before-handler. A message that it refuses is never sent: the fact that
// it records finishes the process.
func (c channel) prepare(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (Envelope, error) {
	p, rt := readPayload(raw), host.In(tx).Runtime()
	id, attempt := number(p.fields, c.id()), number(p.fields, "attempt")
	if id == 0 {
		return Refuse("missing_%s", c.id())
	}
	f, ok, err := c.facts(tx, id)
	switch {
	case err != nil:
		return Envelope{}, err
	case !ok:
		return Refuse("send_%s_task_not_found", c)
	case f.Attempt == 0 || f.Attempt != attempt || f.Succeeded:
		return Refuse("attempt_not_outstanding")
	}
	var message, body string
	if err := run(tx, rt.Store.ReadMessage(string(c), f.Message, &message, &body)); err != nil {
		return Envelope{}, err
	}
	if body == "" {
		if err := run(tx, rt.Store.FailAttempt(string(c), id, attempt, "message has no body", true, rt.Now())); err != nil {
			return Envelope{}, err
		}
		return Refuse("message_has_no_body")
	}
	return c.complete(message, f, attempt)
}

// complete adds to a message the fields with which its sender sends it only once.
func (c channel) complete(message string, f store.SendFacts, attempt int64) (Envelope, error) {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(message), &fields); err != nil {
		return Envelope{}, err
	}
	fields["idempotency_key"], fields["attempt"] = f.Key, attempt
	if c == "sms" {
		fields["since"] = f.First.UTC()
	}
	return OK(fields)
}

// succeed and fail are the handlers. Repeated calls have no further effect.
func (c channel) succeed(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (Envelope, error) {
	p := readPayload(raw)
	return c.recordOutcome(tx, p, func(id, attempt int64, failed, _ bool, rt *host.Runtime) (sqldb.Stmt, string) {
		if failed {
			return sqldb.Stmt{}, "attempt_has_failed"
		}
		return rt.Store.SucceedAttempt(string(c), id, attempt, optional(string(p.fields["worker_payload"])), rt.Now()), ""
	})
}

func (c channel) fail(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (Envelope, error) {
	p := readPayload(raw)
	message := "unknown"
	_ = json.Unmarshal(p.fields["error"], &message) // otherwise the message stays unknown
	return c.recordOutcome(tx, p, func(id, attempt int64, _, succeeded bool, rt *host.Runtime) (sqldb.Stmt, string) {
		if succeeded {
			return sqldb.Stmt{}, "attempt_has_succeeded"
		}
		return rt.Store.FailAttempt(string(c), id, attempt, edge.Message(message), false, rt.Now()), ""
	})
}

// recordOutcome records the outcome of an attempt that was started, unless the attempt already
// has the opposite outcome.
func (c channel) recordOutcome(tx *perdure.Tx, p payload, fact func(id, attempt int64, failed, succeeded bool, rt *host.Runtime) (sqldb.Stmt, string)) (Envelope, error) {
	rt := host.In(tx).Runtime()
	id, attempt := number(p.original, c.id()), number(p.original, "attempt")
	var begun, failed, succeeded bool
	if err := run(tx, rt.Store.ReadAttempt(string(c), id, attempt, &begun, &failed, &succeeded)); err != nil {
		return Envelope{}, err
	}
	if !begun {
		return Refuse("attempt_not_found")
	}
	stmt, refusal := fact(id, attempt, failed, succeeded, rt)
	if refusal != "" {
		return Refuse("%s", refusal)
	}
	if err := run(tx, stmt); err != nil {
		return Envelope{}, err
	}
	return OK(nil)
}

// run runs statements in the unit immediately.
func run(tx *perdure.Tx, stmts ...sqldb.Stmt) error {
	if err := host.In(tx).Attach(nil, stmts...); err != nil {
		return err
	}
	return host.In(tx).Flush()
}
