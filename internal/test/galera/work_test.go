package galera

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/statechart"
)

const counterDocument = `{"initial": "on", "context": {"public": {"count": 0}}, "states": {"on": {"on": {
	"ADD": {"actions": {"type": "xstate.assign", "params": {"assignment": {"public": {"count": {"$expr": "context.public.count + 1"}}}}}}}}}}`

// process is a process with all kinds of work, on one node.
type process struct {
	eng    *perdure.Engine
	send   *hook.Hook[int]
	remind *alarm.Type[int]
	order  *fsm.Definition[int]
	line   *fsm.Definition[string]
	actors *actor.Actors
}

// ledger has what the handlers of all processes have done.
type ledger struct {
	shop    *torture.Shop
	mu      sync.Mutex
	running map[string]int // instances that run, by partition key
	broken  []string
	errors  atomic.Int64
}

func (l *ledger) effect(name string) func(tx *perdure.Tx) error {
	return func(tx *perdure.Tx) error {
		_, err := tx.Create(l.shop.Accounts, schema.Values{"id": name, "name": "effect"})
		return err
	}
}

func (l *ledger) enter(key string, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[key] += by; l.running[key] > 1 {
		l.broken = append(l.broken, key)
	}
}

// start starts a process with dispatchers for all kinds.
func (l *ledger) start(t *testing.T, eng *perdure.Engine) *process {
	t.Helper()
	p := &process{eng: eng}
	onError := func(error) { l.errors.Add(1) }
	hooks, err := hook.New(eng, "shop", &hook.Options{OnError: onError})
	must(t, err)
	p.send, err = hook.Define(hooks, "send", func(ctx context.Context, n int) error {
		return perdure.CommitWith(ctx, l.effect(fmt.Sprintf("hook-%d", n)))
	}, nil)
	must(t, err)
	alarms, err := alarm.New(eng, &alarm.Options{OnError: onError})
	must(t, err)
	p.remind, err = alarm.Handle(alarms, "remind", func(ctx context.Context, n int) error {
		return perdure.CommitWith(ctx, l.effect(fmt.Sprintf("alarm-%d", n)))
	}, nil)
	must(t, err)
	machines, err := fsm.New(eng, &fsm.Options{OnError: onError})
	must(t, err)
	p.order = fsm.Define("order", 1, nil,
		fsm.Step("open", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Await("pay").Then("ship"), nil }, nil),
		fsm.Step("ship", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
			return r.Done(nil).With(l.effect(fmt.Sprintf("order-%d", r.State))), nil
		}, nil))
	p.line = fsm.Define("line", 1, nil, fsm.Step("run", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
		l.enter(r.State, 1)
		defer l.enter(r.State, -1)
		return r.Done(nil), nil
	}, nil))
	must(t, machines.Register(p.order, p.line))
	p.actors, err = actor.New(eng, &actor.Options{OnError: onError})
	must(t, err)
	must(t, p.actors.Register("counter", []byte(counterDocument), nil))
	for _, processor := range []dispatch.Starter{hooks, alarms, machines, p.actors} {
		d, err := dispatch.NewWaker(processor, &dispatch.WakerOptions{OnError: onError})
		must(t, err)
		d.Start()
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), testdb.Patience)
			defer cancel()
			if err := d.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tally counts what was acknowledged, and what may have been committed.
type tally struct {
	mu      sync.Mutex
	effects map[string]bool // acknowledged; false: perhaps
	counts  map[string][2]int
}

func (l *tally) note(name string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := err == nil
	l.effects[name] = known
	return known
}

func (l *tally) count(actor string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[actor]
	if err == nil {
		c[0]++
	}
	c[1]++
	l.counts[actor] = c
}

// Work of all kinds is started on all nodes, and signals and events come from other nodes
// than those that run the work. One node is killed and rejoins. Everything that was
// acknowledged runs, and commits exactly once.
func testWork(t *testing.T, cluster *testdb.Cluster) {
	urls := cluster.Databases(t)
	shop := torture.NewShop()
	engines := openAll(t, urls, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{shop.Schema}})
	l := &ledger{shop: shop, running: map[string]int{}}
	processes := make([]*process, len(engines))
	for i, eng := range engines {
		processes[i] = l.start(t, eng)
	}
	for n := range 3 {
		_, err := processes[0].actors.Spawn(t.Context(), counter(n), system, nil, nil)
		must(t, err)
	}
	acknowledged := &tally{effects: map[string]bool{}, counts: map[string][2]int{}}
	total := times(120)
	killed := make(chan error, 1)
	var writers sync.WaitGroup
	var next atomic.Int64
	for w := range 9 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for {
				n := int(next.Add(1))
				if n == total/2 {
					killed <- cluster.Nodes[2].Kill()
				}
				if n > total {
					return
				}
				here, there := processes[w%3], processes[random.IntN(3)]
				if n > total/2 { // the node that was killed is not used until it has rejoined
					here, there = processes[w%2], processes[random.IntN(2)]
				}
				write(t.Context(), n, here, there, acknowledged)
			}
		})
	}
	must(t, <-killed)
	must(t, cluster.Rejoin(2))
	writers.Wait()
	write(t.Context(), total+1, processes[2], processes[2], acknowledged)
	await(t, urls[0], acknowledged.known())
	for _, eng := range engines {
		verify(t, eng)
	}
	examine(t, engines[2])
	acknowledged.check(t, engines[2], shop, processes[2].actors)
	if len(l.broken) > 0 {
		t.Errorf("instances of one partition ran concurrently: %v", l.broken)
	}
	t.Logf("%d work items, %d effects, %d background errors", total, len(acknowledged.effects), l.errors.Load())
}

var system = actor.Caller{Kind: actor.System}

func counter(n int) actor.Ref { return actor.Ref{Type: "counter", ID: fmt.Sprint(n % 3)} }

// write commits one piece of each kind of work on a node, and its signal or event on
// another.
func write(ctx context.Context, n int, here, there *process, acknowledged *tally) {
	ctx, cancel := context.WithTimeout(ctx, testdb.Patience)
	defer cancel()
	acknowledged.note(fmt.Sprintf("hook-%d", n), here.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := here.send.TriggerIn(tx, n, nil)
		return err
	}))
	acknowledged.note(fmt.Sprintf("alarm-%d", n), here.remind.Schedule(ctx, alarm.ID(fmt.Sprint(n)), n, &alarm.ScheduleOptions{At: clock.System.Now()}))
	started, err := fsm.Start(ctx, here.eng, here.order, n, nil)
	if err == nil {
		_, err = fsm.Send(ctx, there.eng, started.ID, "pay", 1, nil)
	}
	acknowledged.note(fmt.Sprintf("order-%d", n), err)
	key := fmt.Sprint("line-", n%5)
	_, _ = fsm.Start(ctx, here.eng, here.line, key, &fsm.StartOptions{Partition: key})
	_, err = there.actors.Send(ctx, counter(n), system, statechart.Event{Type: "ADD"}, nil)
	acknowledged.count(counter(n).ID, err)
}

// known returns the number of effects that were acknowledged.
func (l *tally) known() (n int) {
	for _, known := range l.effects {
		if known {
			n++
		}
	}
	return n
}

// await waits until no work is left that can run, and there are as many effects as were
// acknowledged. Orders whose signal was not delivered, because its node was killed, wait on.
func await(t *testing.T, url string, known int) {
	t.Helper()
	db, err := testdb.Open(url)
	must(t, err)
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	var text string
	for {
		var left, effects, waiting, behind int
		err := db.QueryRowContext(ctx, `select (select count(*) from perdure_ready), (select count(*) from shop_accounts where name = 'effect'),
			(select count(*) from perdure_waiting w join perdure_signals s on s.target_id = w.id), (select count(*) from perdure_partition_waiting)`).Scan(&left, &effects, &waiting, &behind)
		if err != nil {
			t.Fatal(err)
		}
		if left+waiting+behind == 0 && effects >= known {
			return
		}
		text = fmt.Sprintf("%d ready, %d waiting with a signal, %d behind others, %d of %d effects", left, waiting, behind, effects, known)
		select {
		case <-ctx.Done():
			t.Fatalf("work is left: %s", text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// check compares what was acknowledged with the tables.
func (l *tally) check(t *testing.T, eng *perdure.Engine, shop *torture.Shop, actors *actor.Actors) {
	t.Helper()
	for name, known := range l.effects {
		err := eng.View(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Get(shop.Accounts, name)
			return err
		})
		if known && err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
	for id, c := range l.counts {
		record, err := actors.Get(t.Context(), actor.Ref{Type: "counter", ID: id})
		must(t, err)
		var state struct {
			Context struct{ Public struct{ Count int } }
		}
		must(t, json.Unmarshal(record.Snapshot, &state))
		if n := state.Context.Public.Count; n < c[0] || n > c[1] {
			t.Errorf("counter %s is %d, but %d of %d events were acknowledged", id, n, c[0], c[1])
		}
	}
}
