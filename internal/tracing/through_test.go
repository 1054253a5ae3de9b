package tracing_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// state is the state of the machines.
type state struct{ Leaf bool }

// program starts an instance for each request; the instance spawns a child, the
// child triggers a hook, and the hook sends an SMS.
type program struct {
	eng      *perdure.Engine
	machines *fsm.Machines
	hooks    *hook.Hooks
	worker   *task.Worker
	order    *fsm.Definition[state]
	ship     *hook.Hook[string]
	sent     chan struct{}
}

func newProgram(t *testing.T, db enginetest.Database, provider *sdk.TracerProvider) *program {
	t.Helper()
	p := &program{eng: db.Open(t, &perdure.Options{TracerProvider: provider}), sent: make(chan struct{}, 1)}
	var err error
	if p.machines, err = fsm.New(p.eng, nil); err != nil {
		t.Fatal(err)
	}
	if p.hooks, err = hook.New(p.eng, "shop", nil); err != nil {
		t.Fatal(err)
	}
	p.worker, err = task.NewWorker(p.eng, &task.Options{Senders: map[string]task.Sender{"sms": p.send}})
	if err != nil {
		t.Fatal(err)
	}
	if p.ship, err = hook.Define(p.hooks, "ship", p.notify, nil); err != nil {
		t.Fatal(err)
	}
	p.order = fsm.Define("order", 1, nil, fsm.Step("begin", p.begin, nil), fsm.Step("end", p.end, nil))
	if err := p.machines.Register(p.order); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if _, err := fsm.Start(ctx, p.eng, p.order, state{}, nil); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (p *program) begin(ctx context.Context, run *fsm.Run[state]) (fsm.Outcome, error) {
	if !run.State.Leaf {
		return run.Spawn(fsm.ChildOf(p.order, state{Leaf: true}, nil)).Then("end"), nil
	}
	err := p.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := p.ship.TriggerIn(tx, run.ID, nil)
		return err
	})
	return run.Done(nil), err
}

func (p *program) end(_ context.Context, run *fsm.Run[state]) (fsm.Outcome, error) {
	return run.Done(nil), nil
}

func (p *program) notify(ctx context.Context, _ string) error {
	return p.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := task.SendSMSIn(tx, task.SMS{To: "+491701234567", Body: "on its way"}, nil)
		return err
	})
}

func (p *program) send(context.Context, json.RawMessage) (any, error) {
	p.sent <- struct{}{}
	return nil, nil
}

// run runs everything that is due, and what that makes due.
func (p *program) run(t *testing.T) {
	t.Helper()
	group, err := dispatch.Group(p.machines, p.hooks, p.worker)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		if n, err = group.Process(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-p.sent
}

// One trace leads from the request over the machine, its child and the hook to
// the message.
func TestOneTraceGoesThroughAllKindsOfWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exporter := tracetest.NewInMemoryExporter()
			provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
			p := newProgram(t, enginetest.New(t, name), provider)
			ctx, request := provider.Tracer("test").Start(t.Context(), "request")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
			propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
			answer := httptest.NewRecorder()
			p.ServeHTTP(answer, r)
			if answer.Code != http.StatusOK {
				t.Fatal(answer.Body)
			}
			p.run(t)
			request.End()
			check(t, exporter.GetSpans())
		})
	}
}

// chain are the spans by their names, each with that of its parent.
var chain = map[string][]string{
	"process order": {"request", "process order"},
	"process ship":  {"process order"},
	"process sms":   {"process db_function"},
}

func check(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	byID, seen := map[string]tracetest.SpanStub{}, map[string]bool{}
	for _, s := range spans {
		byID[s.SpanContext.SpanID().String()] = s
	}
	for _, s := range spans {
		parent := byID[s.Parent.SpanID().String()]
		seen[s.Name+" of "+parent.Name] = true
		if s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
			t.Errorf("%q is of another trace", s.Name)
		}
	}
	for name, parents := range chain {
		for _, parent := range parents {
			if !seen[name+" of "+parent] {
				t.Errorf("%q does not lead back to %q: %v", name, parent, seen)
			}
		}
	}
}
