package effect

import (
	"strings"
)

// Marks of statements that are no steps of their own in most pairs.
const (
	reads      = "h.max_attempts, h.attempt + case" // HookGet
	caps       = "delete from perdure.attempts a"
	tries      = "insert into perdure.attempts"
	interrupts = "perdure.interrupts"
	endOfLease = "delete from perdure.leases"
)

var quietly = []string{reads, caps, tries, endOfLease}

// mutation changes the text of a statement.
type mutation func(text string) string

// instead returns a mutation that replaces a part of the statements that contain all the
// marks.
func instead(part, text string, marks ...string) mutation {
	return func(sql string) string {
		for _, mark := range marks {
			if !strings.Contains(sql, mark) {
				return sql
			}
		}
		return strings.ReplaceAll(sql, part, text)
	}
}

// all applies mutations one after the other.
func all(mutations ...mutation) mutation {
	return func(sql string) string {
		for _, m := range mutations {
			sql = m(sql)
		}
		return sql
	}
}

// The mutations, by what they break.
var (
	// Outcomes and returns that do not lock their hooks.
	unlocked = instead("for no key update of h", "", "order by h.id")
	// A reaper that does not lock the hooks.
	untaken = instead("for no key update of h skip locked", "", "order by h.id")
	// Acts that do not lock their hooks.
	unfound = instead("for no key update of h", "", "h.namespace")
	// Outcomes that do not lock their leases.
	unshared = instead("for key share", "", "perdure.leases")
	// Outcomes that do not look whether their claims were taken away.
	deaf = instead("where token =", "where false and token =", "select id::text, token::text")
	// Outcomes that do not look whether their leases exist.
	immortal = instead("from perdure.leases\nwhere token = any($1::uuid[])\norder by token\nfor key share", "from unnest($1::text[]) as l (token)")
	// The same for outcomes with rows of the application.
	unseen = func(sql string) string {
		if strings.Contains(sql, "for key share") {
			return sql
		}
		return instead("from perdure.leases\nwhere token = any($1::uuid[])", "from unnest($1::text[]) as l (token)", "select token::text")(sql)
	}
	// Outcomes that leave the end that they find.
	lenient = instead(") as now) t", ") as now) t on conflict do nothing", "insert into perdure.hook_ends")
	// A cancel that replaces the end that it finds.
	ruthless = instead("on conflict do nothing", "on conflict (id) do update set status = excluded.status, worker = null", "insert into perdure.hook_ends", "'cancelled'")
	// A cancel that does not take the claim away.
	gentle = instead("values ($1::uuid, $2::uuid)", "select $1::uuid, $2::uuid where false", "insert into perdure.interrupts")
	// Acts that take a hook for one that waits, whatever it does.
	blind = func(sql string) string {
		if strings.HasPrefix(sql, "delete from perdure.ready r\nusing perdure.hook_items h") {
			return "update perdure.hook_items set priority = priority where id = $1::uuid"
		}
		return sql
	}
	// A cancel that leaves the hook in its lane.
	idle = instead("where h.id =", "where false and h.id =", "delete from perdure.ready r\nusing perdure.hook_items h")
	// A claim that leases what it has read, not what it has taken.
	greedy = all(instead("for update skip locked", "", "insert into perdure.leases"), instead("from taken", "from due", "insert into perdure.leases"))
	// Acts that do not wait for outcomes of a hook that was cancelled.
	hasty = instead("for update", "", "from perdure.leases\nwhere token = $1::uuid")
)
