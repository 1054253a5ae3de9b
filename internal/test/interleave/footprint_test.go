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
	for text, want := range map[string]footprint{
		"select id from perdure.ready where updated_at < $1": reads,
		"\n SELECT 1": reads,
		"with due as (select 1) select * from due":                              reads,
		"select id from perdure.ready for update":                               writes,
		"select id from perdure.ready\nfor  no key update skip locked":          writes,
		"select id from perdure_ready lock in share mode":                       writes,
		"select pg_advisory_xact_lock(1)":                                       writes,
		"select get_lock('x', 1)":                                               writes,
		"select pid from pg_locks":                                              writes,
		"select queues.require_task('x', '{}')":                                 writes,
		"select nextval('x')":                                                   writes,
		"with gone as (delete from perdure.ready returning id) select * from x": writes,
		"update perdure.ready set id = $1":                                      writes,
		"insert into x select 1":                                                writes,
		"set x = 1":                                                             writes,
		"commit":                                                                anything,
		"ROLLBACK":                                                              anything,
	} {
		if got := footprintOf(text); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

// toy is a step of a transaction on two rows.
type toy struct {
	does footprint // anything commits
	row  int
}

// play runs a path of the enumerator, and returns what the sessions read and left.
func play(e *enumerator, sessions [][]toy, reduced bool) string {
	var (
		rows  [2]int
		open  = make([]map[int]int, len(sessions))
		at    = make([]int, len(sessions))
		found = make([][]int, len(sessions))
		did   footprint
	)
	for {
		var ready []int
		for i, steps := range sessions {
			if at[i] < len(steps) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return fmt.Sprint(found, rows)
		}
		if !reduced {
			did = anything
		}
		i := e.choose(ready, did)
		step := sessions[i][at[i]]
		at[i]++
		switch did = step.does; did {
		case reads:
			found[i] = append(found[i], rows[step.row])
		case writes:
			if open[i] == nil {
				open[i] = map[int]int{}
			}
			open[i][step.row] = 10*i + at[i]
		case anything:
			for row, value := range open[i] {
				rows[row] = value
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
		return toy{rapid.SampledFrom([]footprint{reads, reads, writes, anything}).Draw(t, "does"), rapid.IntRange(0, 1).Draw(t, "row")}
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
