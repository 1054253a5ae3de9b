package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// many is the number of rows that no statement may read. There are more ready rows: with
// fewer, PostgreSQL rightly reads all of them to count 10,000.
const many, ready = 20_000, 5 * many

// crowd adds many hooks that have ended, many pending ones of one lane, and more ready
// instances of queues before and after the lanes of hooks.
func (s *hookScene) crowd() {
	s.Helper()
	numbers := fmt.Sprintf("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d) ", 2*many+ready)
	id, tab, at := "printf('00000000-0000-7000-a000-%012x', i)", "char(9)", fmt.Sprint(noon.UnixMicro())+" - i * 1000"
	if s.db.Dialect().Name == sqldb.Postgres {
		id, tab, at = "('00000000-0000-7000-a000-' || lpad(to_hex(i), 12, '0'))::uuid", "chr(9)", "timestamptz '2030-01-02 12:00:00+00' - i * interval '1 millisecond'"
	}
	lane := "'hook' || " + tab + " || 'shop' || " + tab + " || 'mail'"
	s.exec(numbers + "insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at) select " +
		id + ", 'k' || i, 'shop', 'mail', " + lane + ", '{}', 0, '{}', 5, 'u', " + at + ", " + at + fmt.Sprintf(" from n where i <= %d", 2*many))
	s.exec(numbers + "insert into perdure.hook_ends (id, status, created_at, finished_at) select " + id + ", 'done', " + at + ", " + at + fmt.Sprintf(" from n where i <= %d", many))
	s.exec(numbers + "insert into perdure.ready (queue, priority, due_at, id) select case when i <= " + fmt.Sprint(2*many) + " then " + lane + " when i % 2 = 0 then 'aaa' else 'zzz' end, 0, " + at + ", " + id +
		fmt.Sprintf(" from n where i > %d", many))
	if s.db.Dialect().Name == sqldb.Postgres {
		for _, table := range []string{"hook_items", "hook_ends", "ready", "leases"} {
			s.exec("analyze perdure." + table)
		}
	}
}

// explained returns the plan of a statement, as a text or as JSON.
func (s *hookScene) explained(stmt sqldb.Stmt) []string {
	s.Helper()
	var lines []string
	how := sqldb.Stmt{SQL: "explain query plan " + stmt.SQL, Args: stmt.Args}
	how.Row = func(scan sqldb.Scan) error {
		var id, parent, unused int
		var line string
		err := scan(&id, &parent, &unused, &line)
		lines = append(lines, line)
		return err
	}
	if s.db.Dialect().Name == sqldb.Postgres {
		how = sqldb.Stmt{SQL: "explain (analyze, format json) " + stmt.SQL, Args: stmt.Args}
		how.Row = func(scan sqldb.Scan) error {
			var text string
			err := scan(&text)
			lines = append(lines, text)
			return err
		}
	}
	s.read(how)
	return lines
}

// pgPlan is a part of a plan that PostgreSQL has run.
type pgPlan struct {
	Node    string  `json:"Node Type"`
	Rows    float64 `json:"Actual Rows"`
	Removed float64 `json:"Rows Removed by Filter"`
	Loops   float64 `json:"Actual Loops"`
	Plans   []pgPlan
}

// rows returns how many rows the scans of a plan have read.
func (p pgPlan) rows() (n float64) {
	switch p.Node {
	case "Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan", "Function Scan":
		n = (p.Rows + p.Removed) * p.Loops
	}
	for _, sub := range p.Plans {
		n += sub.rows()
	}
	return n
}

// statements are those that read hooks, with the number of rows that each may read: some
// for each row that it returns or counts.
func (s *hookScene) statements() map[string]struct {
	stmt sqldb.Stmt
	most float64
} {
	type bounded = struct {
		stmt sqldb.Stmt
		most float64
	}
	before, in := HookPlace{At: noon.Add(time.Hour), Item: firstID}, Span{After: noon.Add(-time.Hour), Until: noon}
	group := HookGroup{Namespace: "shop", Name: "mail"}
	var claimed bool
	claims, _ := s.st.Claimed(HookKind, Waiting{Queue: "zoo", Name: "feed"}, noon, &claimed)
	state, _ := s.st.AuditState("hooks", []string{item(2)}, noon, func(AuditState) {})
	place := func(HookPlace) {}
	all := map[string]bounded{
		"all":             {s.st.HooksIn(Everywhere, before, 10, place), 100},
		"dead":            {s.st.HooksIn(Died, before, 10, place), 100},
		"running":         {s.st.HooksIn(Running, before, 10, place), 100},
		"waiting":         {s.st.WaitingHooks(group, HookPlace{At: in.After, Item: firstID}, 10, place), 100},
		"dead letters":    {s.st.DeadLetters(HookKind, DeadPosition{}, 10, func(Dead) {}), 100},
		"upcoming":        {s.st.UpcomingHooks(group, in, 10, func(Upcoming) {}), 100},
		"count due":       {s.st.CountDueHooks(group, in, 10, func(int, *time.Time) {}), 100},
		"first group":     {s.st.NextHookGroup(HookGroup{Priority: -100}, func(HookGroup) {}), 100},
		"next group":      {s.st.NextHookGroup(group, func(HookGroup) {}), 100},
		"first queue":     {s.st.NextReadyGroup(ReadyGroup{Priority: -100}, func(ReadyGroup) {}), 100},
		"next queue":      {s.st.NextReadyGroup(ReadyGroup{Queue: "aaa"}, func(ReadyGroup) {}), 100},
		"claimed":         {claims, 100},
		"audit":           {state, 100},
		"search":          {s.st.SearchHooks(Range{"fail", "fail~"}, &Range{item(1), item(3)}, func() time.Time { return noon }, func(Hit) {}), 100},
		"keys in a range": {s.st.SearchHooks(Range{"x", "x~"}, &Range{firstID, lastID}, func() time.Time { return noon }, func(Hit) {}), 1200},
		"places":          {s.st.CountPlaces(10, func(string, int) {}), 300},
		"marks":           {s.st.Marks(func(string, string) {}), 2500},
		"hook depth":      {s.st.depth("hook", "HookDepth", func(Depth) {}, noon), 10_500},
		"instance depth":  {s.st.depth("instance", "InstanceDepth", func(Depth) {}, noon), 10_500},
		"executing":       {s.st.InstancesIn(ExecutingPlace, lastID, 10, func(string) {}), 100},
	}
	for _, take := range s.st.TakeSamples(Span{After: noon, Until: noon.Add(time.Hour)}, func(Sample) {}) {
		if strings.Contains(take.SQL, "hook_ends") {
			all["samples"] = bounded{take, 100}
		}
	}
	return all
}

func TestNoStatementReadsOtherHooks(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		s.crowd()
		for name, b := range s.statements() {
			lines := s.explained(b.stmt)
			if s.db.Dialect().Name == sqldb.SQLite {
				s.seeks(name, lines)
				continue
			}
			var plans []struct{ Plan pgPlan }
			if err := json.Unmarshal([]byte(lines[0]), &plans); err != nil {
				s.Fatal(err)
			}
			if n := plans[0].Plan.rows(); n > b.most {
				s.Errorf("%s reads %.0f rows, more than %.0f:\n%s", name, n, b.most, lines[0])
			}
		}
	})
}

// partialIndexes are the walks along an index of ends that has only some of them.
var partialIndexes = []string{"perdure_hook_ends_at_idx", "perdure_hook_ends_dead_at_idx", "perdure_hook_ends_dead_idx"}

// seeks checks that a plan of SQLite enters the tables of hooks by an index, and sorts none
// of them. Sorts are of the few rows that a subquery has found.
func (s *hookScene) seeks(name string, lines []string) {
	s.Helper()
	sorted := 0
	for _, line := range lines {
		scan, ok := strings.CutPrefix(line, "SCAN ")
		if line == "USE TEMP B-TREE FOR ORDER BY" {
			sorted++
		}
		if !ok {
			continue
		}
		table, index, _ := strings.Cut(scan, " ")
		switch table {
		case "h", "e", "r", "perdure_hook_items", "perdure_hook_ends", "perdure_ready":
			ordered := name == "marks" && strings.HasSuffix(index, "perdure_hook_items_created_idx")
			if !ordered && !slices.ContainsFunc(partialIndexes, func(p string) bool { return strings.HasSuffix(index, p) }) {
				s.Errorf("%s reads a table: %s", name, line)
			}
		}
	}
	if walks := []string{"all", "dead", "waiting", "dead letters", "upcoming", "count due"}; slices.Contains(walks, name) && sorted > 0 {
		s.Errorf("%s sorts:\n%s", name, strings.Join(lines, "\n"))
	}
}
