package interleave

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOnlyPlainReadsAreReads(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]effect{
		"select id from perdure.ready where updated_at < $1": isRead,
		"\n SELECT 1": isRead,
		"with due as (select 1) select * from due":                              isRead,
		"select id from perdure.ready for update":                               isWrite,
		"select id from perdure.ready\nfor  no key update skip locked":          isWrite,
		"select id from perdure_ready lock in share mode":                       isWrite,
		"select pg_advisory_xact_lock(1)":                                       isWrite,
		"select get_lock('x', 1)":                                               isWrite,
		"select pid from pg_locks":                                              isWrite,
		"select queues.require_task('x', '{}')":                                 isWrite,
		"select coalesce(pg_current_xact_id_if_assigned()::text, '')":           isRead,
		"select nextval('x')":                                                   isWrite,
		"with gone as (delete from perdure.ready returning id) select * from x": isWrite,
		"update perdure.ready set id = $1":                                      isWrite,
		"insert into x select 1":                                                isWrite,
		"set x = 1":                                                             isWrite,
		"commit":                                                                isOther,
		"ROLLBACK":                                                              isOther,
	} {
		if got := footprintOf(text).effect; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func TestWritesNameTheirTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"update perdure.ready set id = $1":                                                            "|perdure.ready|",
		"insert into perdure.ready (id) select id from perdure.leases on conflict do nothing":         "|perdure.ready||perdure.leases|",
		"insert into perdure.ready (id) values (1) on conflict (id) do update set id = excluded.id":   "|perdure.ready|",
		"select id from perdure.instances i where id = $1 for no key update of i skip locked":         "|perdure.instances|",
		"with gone as (delete from perdure.ready returning id) update perdure.leases set x = gone.id": "|perdure.ready||perdure.leases|",
		"insert into written select 1":                                                                "|written|",
		"delete from perdure.alarm_items":                                                             "|perdure.alarm_items||perdure.attempts|",
		"update perdure.ready set id = perdure.arrive ()":                                             "",
		"update queues.task set id = $1":                                                              "",
		"select pg_advisory_xact_lock(1) from perdure.ready":                                          "",
		"set x = 1": "",
	} {
		if got := footprintOf(text).tables; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Writes are independent if they name different tables, and not both are the first of their
// transactions.
func TestIndependence(t *testing.T) {
	t.Parallel()
	ready, leases := footprintOf("delete from perdure.ready"), footprintOf("delete from perdure.leases")
	for _, c := range []struct {
		a, b footprint
		want bool
	}{
		{reads, reads, true}, {reads, writes, true}, {reads, anything, false}, {writes, writes, false}, {ready, writes, false},
		{ready, ready, false}, {ready, leases, true}, {ready.and(leases), leases, false}, {ready.and(reads), leases, true},
		{ready.and(writes), leases, false}, {ready.and(anything), leases, false}, {ready.first(), leases, true}, {ready.first(), leases.first(), false},
	} {
		if got := independent(c.a, c.b); got != c.want || independent(c.b, c.a) != got {
			t.Errorf("%v and %v: independent is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// toy is a step of a transaction on two tables. anything commits. A write is told how many
// writes the table had before it, and the first of a transaction how many transactions were
// before it, as if it had waited for them.
type toy struct {
	does  footprint
	table int
}

// footprint returns what the step does after others of its transaction.
func (s toy) footprint(wrote bool) footprint {
	if s.does != writes {
		return s.does
	}
	f := footprint{isWrite, fmt.Sprintf("|%d|", s.table)}
	if !wrote {
		return f.first()
	}
	return f
}

// play runs a path of the enumerator, and returns what the sessions read and left.
func play(e *enumerator, sessions [][]toy, reduced bool) string {
	var (
		tables, written [2]int
		transactions    int
		open            = make([]map[int]int, len(sessions))
		at              = make([]int, len(sessions))
		found           = make([][]int, len(sessions))
		did             footprint
	)
	for {
		var ready []int
		for i, steps := range sessions {
			if at[i] < len(steps) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return fmt.Sprint(found, tables)
		}
		if !reduced {
			did = anything
		}
		i := e.choose(ready, did)
		step := sessions[i][at[i]]
		at[i]++
		did = step.footprint(open[i] != nil)
		switch step.does {
		case reads:
			found[i] = append(found[i], tables[step.table])
		case writes:
			if open[i] == nil {
				open[i] = map[int]int{}
				transactions++
				found[i] = append(found[i], transactions)
			}
			written[step.table]++
			found[i] = append(found[i], written[step.table])
			open[i][step.table] = 10*i + at[i]
		case anything:
			for table, value := range open[i] {
				tables[table] = value
			}
			open[i] = nil
		}
	}
}

func explore(sessions [][]toy, reduced bool) (outcomes map[string]bool, paths int) {
	var e enumerator
	outcomes = map[string]bool{}
	for more := true; more; more = e.advance() {
		e.begin()
		outcomes[play(&e, sessions, reduced)] = true
		paths++
	}
	return outcomes, paths
}

// The reduction runs fewer paths, and finds every outcome.
func TestTheReductionLosesNoOutcome(t *testing.T) {
	t.Parallel()
	step := rapid.Custom(func(t *rapid.T) toy {
		return toy{rapid.SampledFrom([]footprint{reads, reads, writes, anything}).Draw(t, "does"), rapid.IntRange(0, 1).Draw(t, "table")}
	})
	rapid.Check(t, func(t *rapid.T) {
		sessions := rapid.SliceOfN(rapid.SliceOfN(step, 1, 4), 2, 3).Draw(t, "sessions")
		all, many := explore(sessions, false)
		some, fewer := explore(sessions, true)
		if !maps.Equal(all, some) {
			t.Fatalf("%d of %d outcomes are found: not all of %v", len(some), len(all), slices.Sorted(maps.Keys(all)))
		}
		if fewer > many {
			t.Fatalf("%d paths, and %d without the reduction", fewer, many)
		}
	})
}

func TestReadsOfTwoSessionsHaveOneOrder(t *testing.T) {
	t.Parallel()
	readers := []toy{{does: reads}, {does: reads}, {does: reads}}
	if _, paths := explore([][]toy{readers, readers}, true); paths > 4 {
		t.Errorf("%d paths", paths)
	}
	if _, paths := explore([][]toy{{{does: reads}, {does: writes}, {does: anything}}, {{does: writes}, {does: anything}}}, true); paths != 7 {
		t.Errorf("%d paths, want 7 of 10", paths)
	}
}
