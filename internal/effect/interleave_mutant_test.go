package effect

import (
	"strings"

	"github.com/perdure/perdure/internal/test/interleave"
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
type mutation = interleave.Mutation

// The mutations, by what they break.
var (
	// Outcomes and returns that do not lock their hooks.
	unlocked = interleave.Instead("for no key update of h", "", "order by h.id")
	// A reaper that does not lock the hooks.
	untaken = interleave.Instead("for no key update of h skip locked", "", "order by h.id")
	// Acts that do not lock their hooks.
	unfound = interleave.Instead("for no key update of h", "", "h.namespace")
	// Outcomes that do not lock their leases.
	unshared = interleave.Instead("for key share", "", "perdure.leases")
	// Outcomes that do not look whether their claims were taken away.
	deaf = interleave.Instead("where token =", "where false and token =", "select id::text, token::text")
	// Outcomes that do not look whether their leases exist.
	immortal = interleave.Instead("from perdure.leases\nwhere token = any($1::uuid[])\norder by token\nfor key share", "from unnest($1::text[]) as l (token)")
	// The same for outcomes with rows of the application.
	unseen = func(sql string) string {
		if strings.Contains(sql, "for key share") {
			return sql
		}
		return interleave.Instead("from perdure.leases\nwhere token = any($1::uuid[])", "from unnest($1::text[]) as l (token)", "select token::text")(sql)
	}
	// Outcomes that leave the end that they find.
	lenient = interleave.Instead(") as now) t", ") as now) t on conflict do nothing", "insert into perdure.hook_ends")
	// A cancel that replaces the end that it finds.
	ruthless = interleave.Instead("on conflict do nothing", "on conflict (id) do update set status = excluded.status, worker = null", "insert into perdure.hook_ends", "'cancelled'")
	// A cancel that does not take the claim away.
	gentle = interleave.Instead("values ($1::uuid, $2::uuid)", "select $1::uuid, $2::uuid where false", "insert into perdure.interrupts")
	// Acts that take a hook for one that waits, whatever it does.
	blind = func(sql string) string {
		if strings.HasPrefix(sql, "delete from perdure.ready r\nusing perdure.hook_items h") {
			return "update perdure.hook_items set priority = priority where id = $1::uuid"
		}
		return sql
	}
	// A cancel that leaves the hook in its lane.
	idle = interleave.Instead("where h.id =", "where false and h.id =", "delete from perdure.ready r\nusing perdure.hook_items h")
	// A claim that leases what it has read, not what it has taken.
	greedy = interleave.All(interleave.Instead("for update skip locked", "", "insert into perdure.leases"), interleave.Instead("from taken", "from due", "insert into perdure.leases"))
	// Acts that do not wait for outcomes of a hook that was cancelled.
	hasty = interleave.Instead("for update", "", "from perdure.leases\nwhere token = $1::uuid")
)
