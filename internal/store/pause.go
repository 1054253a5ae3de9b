package store

import (
	"regexp"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Pause is work that no process claims until it is resumed.
type Pause struct {
	// Target is the kind of name, a colon and the name.
	Target, Reason, Actor string
	At                    time.Time
	// Until is the end of the pause. Nil: until it is resumed.
	Until *time.Time
}

// SetPause returns the statements that pause a target, or replace its pause. They also remove
// pauses that have ended.
func (s *Store) SetPause(p Pause, now Now) []sqldb.Stmt {
	return []sqldb.Stmt{s.stmt("PausePurge", at(now)), s.stmt("PauseSet", p.Target, p.Reason, p.Actor, at(now), p.Until)}
}

// DeletePause returns the statement that resumes a target.
func (s *Store) DeletePause(target string) sqldb.Stmt { return s.stmt("PauseDelete", target) }

// Pauses returns the statement that reads the pauses in the order of their targets.
func (s *Store) Pauses(now Now, found func(Pause)) sqldb.Stmt {
	return read(s.stmt("PauseList", at(now)), func(p Pause) {
		p.At = p.At.UTC()
		if p.Until != nil {
			until := p.Until.UTC()
			p.Until = &until
		}
		found(p)
	}, func(p *Pause) []any { return []any{&p.Target, &p.Reason, &p.Actor, &p.At, &p.Until} })
}

// pausedMark and parkedMark match the marks of pauses, see template.go.
var (
	pausedMark = regexp.MustCompile(`\{paused (fsm|task|lane) (\S+) ([^{}]+)\}`)
	parkedMark = regexp.MustCompile(`\{parked (\S+)\}`)
)

// pausing is the text of a database for a mark: the condition, the target of a name or a lane,
// the time of the server, and a lane without its parts.
type pausing struct{ paused, named, lane, clock, plain string }

var pausings = map[string]pausing{
	sqldb.Postgres: { // an array, so that no plan joins with the pauses: they are read once
		paused: "{target} = any(array(select paused.target from perdure.pauses paused where paused.until_at is null or paused.until_at > coalesce({now}::timestamptz, now())))",
		named:  "'{kind}:' || {name}",
		clock:  "now()",
		lane: "case when strpos({name}, chr(9)) = 0 then 'queue:' || {name} when split_part({name}, chr(9), 1) = 'hook' then 'hook:' || split_part({name}, chr(9), 3) " +
			"else 'alarm:' || split_part({name}, chr(9), 2) end",
		plain: "split_part({name}, chr(31), 1)",
	},
	sqldb.SQLite: {
		paused: "{target} in (select paused.target from perdure.pauses paused where paused.until_at is null or paused.until_at > {now})",
		named:  "'{kind}:' || ({name})",
		clock:  "cast(unixepoch('subsec') * 1000000 as integer)",
		lane: "case when instr({name}, char(9)) = 0 then 'queue:' || ({name}) when substr({name}, 1, 5) = 'hook' || char(9) then 'hook:' || substr({name}, 6 + instr(substr({name}, 6), char(9))) " +
			"else 'alarm:' || substr({name}, 7) end",
		plain: "substr({name}, 1, instr({name} || char(31), char(31)) - 1)",
	},
	sqldb.MySQL: {
		paused: "{target} in (select paused.target from perdure.pauses paused where paused.until_at is null or paused.until_at > coalesce(cast({now} as datetime(6)), utc_timestamp(6)))",
		named:  "concat('{kind}:', {name})",
		clock:  "utc_timestamp(6)",
		lane: "case when locate(char(9 using utf8mb4), {name}) = 0 then concat('queue:', {name}) " +
			"else concat(substring_index({name}, char(9 using utf8mb4), 1), ':', substring_index({name}, char(9 using utf8mb4), -1)) end",
		plain: "substring_index({name}, char(31 using utf8mb4), 1)",
	},
}

// pauses replaces the marks of pauses in a text.
func pauses(d sqldb.Dialect, text string) string {
	m := pausings[d.Name]
	text = parkedMark.ReplaceAllString(text, "{paused fsm $1 "+m.clock+"}")
	return pausedMark.ReplaceAllStringFunc(text, func(mark string) string {
		parts := pausedMark.FindStringSubmatch(mark)
		target := m.named
		if parts[1] == "lane" {
			target = strings.ReplaceAll(m.lane, "{name}", m.plain)
		}
		target = strings.NewReplacer("{kind}", parts[1], "{name}", parts[2]).Replace(target)
		return "(" + strings.NewReplacer("{target}", "("+target+")", "{now}", parts[3]).Replace(m.paused) + ")"
	})
}
