package alarm

import (
	"strings"

	"github.com/perdure/perdure/internal/test/interleave"
)

// mutation changes the text of a statement.
type mutation = interleave.Mutation

// quietly are marks of statements that are no steps of their own: they read what cannot
// change, or write under locks that the transaction has.
var quietly = []string{
	"delete from perdure.attempts a",   // AlarmAttemptCap
	"insert into perdure.attempts",     // attempts
	"delete from perdure.leases",       // the end of a lease
	"a.generation <> o.generation",     // AlarmYield
	"perdure.interrupts\nwhere",        // the interrupts of a lease, read and removed
	"select coalesce($1::timestamptz,", // the time
}

// The mutations, by what they break.
var (
	// Outcomes that do not lock their alarms.
	unlocked = interleave.Instead("for no key update of h", "", "select h.id::text, h.generation")
	// Outcomes that do not lock their leases.
	unshared = interleave.Instead("for key share", "", "perdure.leases")
	// Outcomes that do not see that their alarm was scheduled again.
	dated = interleave.All(
		interleave.Instead("h.generation", "1::bigint", "select h.id::text, h.generation"),
		interleave.Instead("and a.generation = o.generation", "", "from unnest"),
		interleave.Instead("and a.generation = o.generation", "", "using unnest"),
	)
	// Outcomes that do not compare generations again when they write.
	lax = interleave.All(
		interleave.Instead("and a.generation = o.generation", "", "from unnest"),
		interleave.Instead("and a.generation = o.generation", "", "using unnest"),
	)
	// Outcomes that do not put alarms back.
	keeping = interleave.Instead("where id = any", "where false and id = any", "insert into perdure.ready", "batch_limit is not null, priority, due_at, id\nfrom perdure.alarm_items")
	// Outcomes that do not look whether their claims were taken away.
	deaf = interleave.Instead("where token =", "where false and token =", "select id::text, token::text")
	// Outcomes that take an alarm that is gone for one that exists.
	present = interleave.Instead("select h.id::text, h.generation\nfrom perdure.alarm_items h\nwhere h.id = any($1::uuid[])\norder by h.id\nfor no key update of h",
		"select i.id::text, coalesce(h.generation, 1) from unnest($1::uuid[]) as i (id) left join lateral (select * from perdure.alarm_items h where h.id = i.id for no key update) h on true")
	// Outcomes that do not look whether their leases exist.
	immortal = interleave.Instead("from perdure.leases\nwhere token = any($1::uuid[])\norder by token\nfor key share", "from unnest($1::text[]) as l (token)")
	// The same for outcomes with rows of the application.
	unseen = func(sql string) string {
		if strings.Contains(sql, "for key share") {
			return sql
		}
		return interleave.Instead("from perdure.leases\nwhere token = any($1::uuid[])", "from unnest($1::text[]) as l (token)", "select token::text")(sql)
	}
	// A reaper that does not lock the alarms.
	untaken = interleave.Instead("for no key update of h skip locked", "", "order by h.id")
	// A reaper that returns alarms before they are due.
	impatient = interleave.Instead("greatest(h.due_at, ", "greatest(timestamptz '2000-01-01Z', ", "crashes = o.crashes")
	// A claim that leases what it has read, not what it has taken.
	greedy = interleave.All(interleave.Instead("for update skip locked", "", "insert into perdure.leases"), interleave.Instead("from taken", "from due", "insert into perdure.leases"))

	// Acts that do not lock their alarms.
	unfound = interleave.Instead("for update", "", "from perdure.alarm_items\nwhere actor_type")
	// A cancel that does not wait for a claim that is not committed.
	unwaiting = interleave.Instead("for update of r", "", "select 1\nfrom perdure.alarm_items h")
	// A cancel that removes an alarm that it has not locked, also if that was changed.
	ruthless = interleave.Instead(" and a.xmin = o.version", "", "as version")
	// A cancel that removes nothing.
	undying = interleave.Instead("a.xmin = o.version", "false", "as version")
	// An outcome that leaves the interrupt of its claim.
	clinging = interleave.Instead("where (id, token) in", "where false and (id, token) in", "delete from perdure.interrupts")
	// A cancel that does not take the claim away.
	gentle = interleave.Instead("where o.dead is null", "where false and o.dead is null", "insert into perdure.interrupts")
	// A cancel or a schedule that leaves the alarm in its lane.
	idle = interleave.Instead("where r.queue = o.queue", "where false and r.queue = o.queue", "waited as (")
	// Acts that take an alarm for one that waits, whatever it does.
	blind = func(sql string) string {
		if strings.HasPrefix(sql, "delete from perdure.ready r\nusing perdure.alarm_items h") {
			return "update perdure.alarm_items set priority = priority where id = $1::uuid"
		}
		return sql
	}
	// A purge that does not lock the dead letters that it removes.
	unpurged = interleave.Instead("for update skip locked", "", "where dead is not null and due_at")
	// A schedule that does not lock the alarm that it replaces.
	hasty = interleave.Instead("do update\n  set generation = a.generation\n  where false", "do nothing", "insert into perdure.alarm_items as a")
	// A schedule that expects that no alarm has its key.
	rude = interleave.Instead("on conflict (actor_type, actor_id, alarm_id) do update\n  set generation = a.generation\n  where false", "", "insert into perdure.alarm_items as a")
	// A schedule that replaces the alarm that it has just recorded.
	narcissist = interleave.Instead("a.id <> $1::uuid", "$1::uuid is not null", "as waits")
	// A schedule that makes an alarm ready, whatever it does.
	eager = interleave.Instead("where waits", "", "as waits")
	// A schedule that does not raise the generation.
	same = interleave.Instead("case when o.same then 0 else 1 end", "0", "as waits")
	// A retry that does not look whether the alarm is dead.
	restless = interleave.Instead(" and dead is not null", "", "set dead = null, attempt = 0")
)
