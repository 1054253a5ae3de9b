package fsm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// BenchmarkOtherQueueBesideALargeTree measures how long the instances of another
// queue, in another process, take while a tree of 2,000 children (times PERDURE_SOAK;
// 50 makes 100,000) ends because its root has passed its deadline.
func BenchmarkOtherQueueBesideALargeTree(b *testing.B) {
	for range b.N {
		treeBeside(b, rounds(2000))
	}
}

func treeBeside(b *testing.B, n int) {
	b.Helper()
	db := enginetest.New(b, enginetest.Postgres)
	serve := func(queue string, definitions ...fsm.Definer) (*perdure.Engine, *fsm.Machines) {
		eng, err := perdure.Open(b.Context(), db.DSN, nil)
		enginetest.NoError(b, err)
		b.Cleanup(func() { _ = eng.Close() })
		machines, err := fsm.New(eng, &fsm.Options{Queues: map[string]int{queue: 10}})
		enginetest.NoError(b, err)
		enginetest.NoError(b, machines.Register(definitions...))
		alarm, err := dispatch.NewWaker(machines, nil)
		enginetest.NoError(b, err)
		alarm.Start()
		b.Cleanup(func() { _ = alarm.Stop(context.WithoutCancel(b.Context())) })
		return eng, machines
	}
	root, quick := wide("wide", 1), machine("quick", done, with{Queue: "other"})
	eng, machines := serve(fsm.DefaultQueue, root, leaf)
	otherEng, other := serve("other", quick)
	started, err := fsm.Start(b.Context(), eng, root, 0, nil)
	enginetest.NoError(b, err)
	enginetest.Eventually(b, "the root waits for its children", func() bool {
		instance, err := machines.Get(b.Context(), started.ID)
		return err == nil && instance.WaitsFor == fsm.ForChildren
	})
	for _, text := range []string{
		`insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, created_at)
			select gen_random_uuid(), fsm, version, step, state, queue, priority, parent_id, parent_fanout, n, due_at, created_at
			from perdure.instances, generate_series(1, %[2]d) n where parent_id = '%[1]s' and ordinal = 0`,
		`insert into perdure.ready (queue, priority, due_at, id) select queue, priority, due_at, id from perdure.instances where parent_id = '%[1]s' and ordinal > 0`,
		`update perdure.barriers set pending = pending + %[2]d where parent_id = '%[1]s'`,
		`update perdure.instances set deadline_at = now() where id = '%[1]s'`,
		`insert into perdure.deadlines (at, id) select deadline_at, id from perdure.instances where id = '%[1]s'`,
	} {
		db.Exec(b, strings.NewReplacer("%[1]s", started.ID, "%[2]d", fmt.Sprint(n-1)).Replace(text))
	}
	var longest time.Duration
	began, instances := time.Now(), 0
	for db.Rows(b, "perdure", "finished") < int64(n) || db.Rows(b, "perdure", "tree_ends") > 0 {
		from := time.Now()
		one, err := fsm.Start(b.Context(), otherEng, quick, 0, nil)
		enginetest.NoError(b, err)
		_, err = other.Wait(b.Context(), one.ID)
		enginetest.NoError(b, err)
		longest = max(longest, time.Since(from))
		instances++
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
	b.ReportMetric(time.Since(began).Seconds(), "tree-s")
	b.ReportMetric(float64(instances), "instances")
	b.ReportMetric(0, "ns/op")
}
