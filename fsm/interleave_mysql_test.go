package fsm

import (
	"regexp"
	"slices"
	"strings"
)

// The pairs of TestInterleavingsOnPostgres are written for PostgreSQL. Here are their fixtures for
// MySQL, and the statements that are no steps of their own.

var (
	leaseFixture = regexp.MustCompile(`false, timestamptz '2026-01-01Z' \+ interval '(-?\d+) seconds', '\{(.*)\}'`)
	anyOf        = regexp.MustCompile(`('[-0-9]+') = any\((l\.ids)\)`)
	fixtureWords = strings.NewReplacer(
		"perdure.", "perdure_", "'2026-01-01Z'", "'2026-01-01'", "'{go}'", `'["go"]'`, "(name, key, id)", "(name, `key`, id)", "(key, head)", "(`key`, head)",
		"alone, expires_at, ids", "alone, claimed_at, expires_at, ids", "state::text::int", "state + 0",
	)
)

// onMySQL translates statements of a fixture or a check.
func onMySQL(statements []string) []string {
	var all []string
	for _, text := range statements {
		text = leaseFixture.ReplaceAllStringFunc(text, func(found string) string {
			parts := leaseFixture.FindStringSubmatch(found)
			ids := strings.ReplaceAll(parts[2], ",", `","`)
			return "false, '2026-01-01', cast('2026-01-01' as datetime(6)) + interval " + parts[1] + ` second, '["` + ids + `"]'`
		})
		text = anyOf.ReplaceAllString(text, "locate($1, $2) > 0")
		if strings.HasSuffix(text, " on conflict do nothing") {
			text = strings.Replace(strings.TrimSuffix(text, " on conflict do nothing"), "insert into", "insert ignore into", 1)
		}
		all = append(all, strings.Split(fixtureWords.Replace(text), "; ")...)
	}
	return all
}

// silentOnMySQL reports whether a statement is no step of its own. What continues a
// statement, with what that left in a variable, belongs to it.
func silentOnMySQL(text string, quiet []string) bool {
	if strings.Contains(text, "@perdure_") && !strings.Contains(text, "into @perdure_") || strings.Contains(text, "perdure_signal_keys") {
		return true
	}
	return slices.ContainsFunc(quiet, func(mark string) bool { return marksOnMySQL(text, mark) })
}

// marksOnMySQL reports whether a mark of PostgreSQL's statements is one of a statement.
func marksOnMySQL(text, mark string) bool {
	verb, table, _ := strings.Cut(mark, "perdure.")
	switch verb = strings.TrimSpace(verb); {
	case mark == "for key share":
		return strings.HasPrefix(text, "select l.token\n") && strings.HasSuffix(text, "\nfor update")
	case mark == "select parent_id::text":
		return strings.HasPrefix(text, "select b.parent_id\n")
	case mark == "key = any":
		return strings.HasPrefix(text, "select h.`key`\n")
	case mark == "select seq, target_id":
		return strings.HasPrefix(text, "select s.seq")
	case mark == "select i.id::text, i.fsm":
		return strings.HasPrefix(text, "select i.id, i.fsm")
	case table == "":
		return strings.Contains(text, mark)
	case strings.Contains(mark, "\nfrom"): // a select of ids
		return strings.HasPrefix(text, "select ") && strings.Contains(text, ".id\nfrom") && strings.Contains(text, "perdure_"+table)
	case verb == "delete from", verb == "update", verb == "insert into":
		first, _, _ := strings.Cut(verb, " ")
		return strings.HasPrefix(text, first) && strings.Contains(text, "perdure_"+table+" ") || strings.HasPrefix(text, first) && strings.Contains(text, "perdure_"+table+"\n")
	}
	return strings.Contains(text, "perdure_"+table)
}

// aliveOnMySQL drops the check of the token.
var aliveOnMySQL = both(
	instead("select l.token\n", "select o.token\n", "l.token = o.token\nfor update"),
	without("straight_join perdure_leases l force index (leases_token_key) on l.token = o.token\nfor update", "limit 1000000000"),
)

// Statements of MySQL without their locks.
var (
	unlockedOutcome = unlocked("for update", "select l.token\n")
	unlockedReaper  = unlocked("for update skip locked", "select l.token, l.worker")
	unlockedCancel  = unlocked("for update", "select token\nfrom perdure_leases")
	anyOrder        = instead("(select 1 from perdure_tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq limit 1) is not null", "false")
	takesNothing    = both(unlocked("for update skip locked", "into @perdure_claim"), instead("delete r\n", "select r.id\n", "@perdure_claim"))
	ownsAnyKey      = without("where o.unique_key is null or u.id is not null")
)

// mutantsOnMySQL are the mutants of pairs on MySQL, by the names of the pairs.
var mutantsOnMySQL = map[string]map[string][]mutation{
	"deliver and park":                           {"park that does not look": {nil, instead("on s.target_id = o.id", "on false and s.target_id = o.id", "into @perdure_hit"), nil}},
	"deliver and done":                           {"an end that does not look": {nil, instead("where s.received = 0", "where false and s.received = 0"), nil}},
	"deliver and stop":                           {"an end that does not look": {nil, instead("where s.received = 0", "where false and s.received = 0"), nil}},
	"the outcomes of two claims of one instance": {"no token": {aliveOnMySQL, nil, nil}},
	"an outcome and the reaper": {
		"an outcome without the lock": {unlockedOutcome, nil, nil}, "a reaper without the lock": {nil, unlockedReaper, nil}, "no token": {aliveOnMySQL, nil, nil},
	},
	"a next step and the reaper":                             {"an outcome without the lock": {unlockedOutcome, nil, nil}, "no token": {aliveOnMySQL, nil, nil}},
	"an outcome whose commit is in doubt and its resolution": {"no token": {aliveOnMySQL, nil, nil}},
	"a heartbeat and the reaper":                             {"a reaper without the lock": {nil, unlockedReaper, nil}},
	"two reapers":                                            {"no locks": {unlockedReaper, unlockedReaper, nil}},
	"two picks":                                              {"picks that do not take": {takesNothing, takesNothing, nil}},
	"a fan-out and the reaper":                               {"a fan-out without the lock": {unlockedOutcome, nil, nil}, "no token": {aliveOnMySQL, nil, nil}},
	"two starts with one key":                                {"starts that do not look who owns the key": {ownsAnyKey, ownsAnyKey, nil}},
	"a pick and a start with the key of what it picks":       {"a start that does not look who owns the key": {nil, ownsAnyKey, nil}},
	"the end of a head and a start in its partition":         {"an end without the lock": {unlocked("for update", "select h.`key`"), nil, nil}},
	"a cancel and a next step":                               {"a cancel without the lock": {unlockedCancel, nil, nil}, "an outcome without the lock": {nil, unlockedOutcome, nil}},
	"a cancel and the end":                                   {"a cancel without the lock": {unlockedCancel, nil, nil}},
	"a cancel, a step that ends and the pick of the next":    {"a cancel that does not look again": {lookOnce(), nil, nil}},
	"a piece of a tree and the end of a child":               {"a piece without the lock": {unlocked("for update skip locked", "perdure_leases"), nil, nil}},
	"the last piece of a retry and the end of a child":       {"a count without the lock": {unlocked("for update skip locked", "perdure_barriers"), nil, nil}},
	"a piece of a retry and a cancel":                        {"rows in any order": {nil, anyOrder, nil}},
	"a piece of a cancel and a retry":                        {"rows in any order": {nil, anyOrder, nil}},
}
