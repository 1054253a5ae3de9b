package actor_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/outagetest"
	"github.com/perdure/perdure/statechart"
)

// delayed has a delay that is due at once, and whose guard is what the work does.
const delayed = `{"id": "d", "initial": "a", "states": {"a": {"after": {"0": {"target": "b", "guard": "run"}}}, "b": {}}}`

// delaysProcess is a process that fires delays of actors.
type delaysProcess struct{ *actor.Actors }

// Add implements outagetest.Process.
func (p delaysProcess) Add(ctx context.Context, id string) error {
	_, err := p.Spawn(ctx, actor.Ref{Type: "d", ID: id}, alice, nil, &actor.SpawnOptions{IfAbsent: true})
	return err
}

// Only a lost process counts as a crash of the delays that it fires.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Conform(t, outagetest.Kind{
		Schema: "perdure", Table: "timers", Left: "true", Transactional: true,
		Claims: "firing",
		Open: func(t *testing.T, db enginetest.Database, o outagetest.Options) outagetest.Process {
			t.Helper()
			actors, err := actor.New(db.Open(t, &perdure.Options{Clock: o.Clock}), &actor.Options{Lease: o.Lease, OnError: o.OnError})
			enginetest.NoError(t, err)
			t.Cleanup(func() { enginetest.NoError(t, actors.Drain(enginetest.Context(t))) })
			enginetest.NoError(t, actors.Register("d", []byte(delayed), &actor.TypeOptions{Registry: &statechart.Registry{
				Guards: map[string]statechart.Guard{"run": func(statechart.Args) (bool, error) { o.Run(context.Background()); return true, nil }},
			}}))
			return delaysProcess{actors}
		},
	}, everywhere...)
}
