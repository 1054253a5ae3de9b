package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
)

func done(remote.Context) any { return answer{"outcome": "done"} }

func (Conformance) DefinitionStoredByOneProcessRunsInAnother(t *testing.T, db enginetest.Database) {
	worker := newFixture(t, db)
	eng := db.Open(t, nil)
	server, err := remote.New(eng, nil, &remote.Options{Allow: []string{"127.0.0.1"}})
	enginetest.NoError(t, err)
	e := serve(t, done)
	stored, err := server.Put(t.Context(), definition(e, "charge"))
	enginetest.NoError(t, err)
	e.know(t, stored.Generated)
	starter, err := fsm.New(eng, nil)
	enginetest.NoError(t, err)
	started, err := starter.StartNamed(t.Context(), "order", 0, []byte("{}"), nil)
	enginetest.NoError(t, err)
	if end := worker.ended(t, started.ID); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
}

func (Conformance) EndpointAndSecretChangeForInstancesThatRun(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	old := serve(t, func(remote.Context) any { return answer{"outcome": "await", "signals": []string{"go"}, "step": "last"} })
	f.put(t, old, "first", "last")
	id := f.start(t, "order", "{}")
	f.status(t, id, fsm.Waiting)
	fresh := serve(t, done)
	d := definition(fresh, "first", "last")
	d.Secrets = []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	fresh.know(t, d.Secrets...)
	stored, err := f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	if stored.Generated != "" || stored.Secrets != nil || !stored.Updated.After(stored.Created) && db.Name == enginetest.Postgres {
		t.Errorf("%+v", stored)
	}
	_, err = fsm.Send(t.Context(), f.eng, id, "go", nil, nil)
	enginetest.NoError(t, err)
	if end := f.ended(t, id); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
	if fresh.refused != 0 || len(fresh.contexts()) != 1 {
		t.Errorf("%d refused, %d seen", fresh.refused, len(fresh.contexts()))
	}
	// Without secrets it keeps those that it has.
	d.Secrets = nil
	_, err = f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	if end := f.ended(t, f.start(t, "order", "{}")); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
}

func (Conformance) InstancesOfARemovedDefinitionWaitForIt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, func(c remote.Context) any {
		if c.Step == "first" {
			return answer{"outcome": "await", "signals": []string{"go"}, "step": "last"}
		}
		return answer{"outcome": "done"}
	})
	f.put(t, e, "first", "last")
	id := f.start(t, "order", "{}")
	f.status(t, id, fsm.Waiting)
	enginetest.NoError(t, f.Delete(t.Context(), "order", 1))
	_, err := fsm.Send(t.Context(), f.eng, id, "go", nil, nil)
	enginetest.NoError(t, err)
	f.status(t, id, fsm.NoWorker)
	_, err = f.machines.StartNamed(t.Context(), "order", 0, []byte("{}"), nil)
	enginetest.As[*fault.NotFound](t, err)
	enginetest.As[*fault.NotFound](t, f.Delete(t.Context(), "order", 1))
	if all, err := f.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	f.put(t, e, "first", "last")
	if end := f.ended(t, id); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
}

func (Conformance) VersionKeepsItsSteps(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, done)
	f.put(t, e, "first", "last")
	for _, change := range []func(*remote.Definition){
		func(d *remote.Definition) { d.Steps = d.Steps[:1] },
		func(d *remote.Definition) { d.Steps[0], d.Steps[1] = d.Steps[1], d.Steps[0] },
		func(d *remote.Definition) { d.Steps = append(d.Steps, remote.Step{Name: "more"}) },
		func(d *remote.Definition) { d.Queue = "other" },
	} {
		d := definition(e, "first", "last")
		change(&d)
		_, err := f.Put(t.Context(), d)
		if invalid := enginetest.As[*fault.Invalid](t, err); !strings.Contains(invalid.Reason, "new version") {
			t.Errorf("%v", err)
		}
		d.Version = 2
		_, err = f.Put(t.Context(), d)
		enginetest.NoError(t, err)
		enginetest.NoError(t, f.Delete(t.Context(), "order", 2))
	}
	all, err := f.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Version != 1 || len(all[0].Steps) != 2 || all[0].Steps[0].URL != e.URL || all[0].Secrets != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

func (Conformance) MachineOfAProgramIsNotReplaced(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	ours := fsm.Define("order", 1, nil, fsm.Step("charge", func(_ context.Context, run *fsm.Run[int]) (fsm.Outcome, error) { return run.Done("go"), nil }, nil))
	enginetest.NoError(t, f.machines.Register(ours))
	started, err := fsm.Start(t.Context(), f.eng, ours, 1, nil)
	enginetest.NoError(t, err)
	f.ended(t, started.ID)
	e := serve(t, done)
	_, err = f.Put(t.Context(), definition(e, "charge"))
	enginetest.As[*fault.Duplicate](t, err)
	enginetest.As[*fault.NotFound](t, f.Delete(t.Context(), "order", 1))
	if end := f.ended(t, f.start(t, "order", "1")); string(end.Result) != `"go"` {
		t.Errorf("%s", end.Result)
	}
}

func TestBadDefinitionsAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite))
	e := serve(t, done)
	for name, change := range map[string]func(*remote.Definition){
		"no name":           func(d *remote.Definition) { d.Name = "" },
		"no version":        func(d *remote.Definition) { d.Version = 0 },
		"bad queue":         func(d *remote.Definition) { d.Queue = "a\nb" },
		"no steps":          func(d *remote.Definition) { d.Steps = nil },
		"many steps":        func(d *remote.Definition) { d.Steps = make([]remote.Step, remote.MaxSteps+1) },
		"nameless step":     func(d *remote.Definition) { d.Steps[0].Name = "" },
		"step twice":        func(d *remote.Definition) { d.Steps = append(d.Steps, d.Steps[0]) },
		"no URL":            func(d *remote.Definition) { d.URL = "" },
		"private URL":       func(d *remote.Definition) { d.URL = "http://10.0.0.1/" },
		"metadata URL":      func(d *remote.Definition) { d.Steps[0].URL = "http://169.254.169.254/" },
		"file URL":          func(d *remote.Definition) { d.URL = "file:///etc/passwd" },
		"URL with password": func(d *remote.Definition) { d.URL = "http://a:b@127.0.0.1/" },
		"endless timeout":   func(d *remote.Definition) { d.Steps[0].Timeout = time.Hour },
		"negative timeout":  func(d *remote.Definition) { d.Steps[0].Timeout = -1 },
		"short secret":      func(d *remote.Definition) { d.Secrets = []string{"whsec_c2hvcnQ="} },
		"three secrets":     func(d *remote.Definition) { d.Secrets = []string{"a", "b", "c"} },
		"bad policy":        func(d *remote.Definition) { d.Retry.MaxAttempts = -1 },
	} {
		d := definition(e, "charge")
		change(&d)
		_, err := f.Put(t.Context(), d)
		if invalid := (*fault.Invalid)(nil); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := f.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := remote.New(f.eng, nil, &remote.Options{Allow: []string{"127.1"}}); err == nil {
		t.Error("a bad list was accepted")
	}
}

func (Conformance) DefinitionThatCannotBeReadHoldsUpNobody(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, done)
	f.put(t, e, "charge")
	enginetest.NoError(t, f.Delete(t.Context(), "order", 1))
	insert := "insert into " + db.Table("perdure", "remote_definitions") + " (fsm, version, spec, secrets, created_at, updated_at) values "
	now := map[string]string{enginetest.SQLite: "0", enginetest.Postgres: "now()"}[db.Name]
	db.Exec(t, insert+`('broken', 1, '[]', '[]', `+now+`, `+now+`), ('broken', 2, '{"steps":[{"name":"a"}]}', '{}', `+now+`, `+now+`)`)
	if err := f.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "broken version 1") || !strings.Contains(err.Error(), "broken version 2") {
		t.Errorf("%v", err)
	}
	f.put(t, e, "charge")
	if end := f.ended(t, f.start(t, "order", "{}")); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
}

func (Conformance) ACheckDecidesAboutTheDefinitionThatIsThere(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, done)
	refusal := errors.New("no")
	var told *remote.Stored
	check := func(answer error) func(*remote.Stored) error {
		return func(before *remote.Stored) error { told = before; return answer }
	}
	d := definition(e, "charge")
	if _, err := f.PutIf(t.Context(), d, check(refusal)); !errors.Is(err, refusal) || told != nil {
		t.Errorf("a new one: %v, told %v", err, told)
	}
	stored, err := f.PutIf(t.Context(), d, check(nil))
	enginetest.NoError(t, err)
	d.Secrets = []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	if _, err := f.PutIf(t.Context(), d, check(refusal)); !errors.Is(err, refusal) || told == nil || told.Revision != stored.Revision {
		t.Errorf("another: %v, told %+v, stored %s", err, told, stored.Revision)
	}
	changed, err := f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	if changed.Revision == stored.Revision {
		t.Error("other secrets are no other revision")
	}
	err = f.DeleteIf(t.Context(), d.Name, d.Version, func(before remote.Stored) error { told = &before; return refusal })
	if all, listed := f.List(t.Context()); !errors.Is(err, refusal) || told.Revision != changed.Revision || listed != nil || len(all) != 1 {
		t.Errorf("its removal: %v, and there are %d: %v", err, len(all), listed)
	}
}
