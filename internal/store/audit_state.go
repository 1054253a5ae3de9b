package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// AuditState is the state of a target before and after an act, as the audit log records it. It
// has no payloads.
type AuditState struct {
	Name     *string    `json:"name,omitempty"`
	Version  *int64     `json:"version,omitempty"`
	Status   *string    `json:"status,omitempty"`
	Step     *string    `json:"step,omitempty"`
	Attempts *int64     `json:"attempts,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	// Spec is the configuration of a schedule or a definition, as JSON. For a schedule it has
	// the size of the state instead of the state.
	Spec *string `json:"-"`
}

// auditStates are the statements for each kind of target, and the functions that convert its
// key to arguments.
var auditStates = map[string]struct {
	name string
	args func(key []string) []any
}{
	"instances":   {"AuditStateInstance", uuidArgs},
	"hooks":       {"AuditStateHook", func(key []string) []any { return hookArgs(key[0]) }},
	"tasks":       {"AuditStateTask", numberArgs},
	"alarms":      {"AuditStateAlarm", alarmArgs},
	"timers":      {"AuditStateAlarm", timerArgs},
	"actors":      {"AuditStateActor", pairArgs},
	"statecharts": {"AuditStateMachine", textArgs},
	"nodes":       {"AuditStateNode", textArgs},
	"schedules":   {"AuditStateSchedule", textArgs},
	"definitions": {"AuditStateDefinition", definitionArgs},
	"tokens":      {"AuditStateToken", uuidArgs},
}

// AuditState returns the statement that reads a target for the audit log. The key is the id of
// the target. For an actor it is the type and id; for a timer, the actor's type and id and the
// timer's own key; for a definition, the name and version. ok is false for a kind without state
// and for an impossible key. now distinguishes scheduled work from ready work.
func (s *Store) AuditState(kind string, key []string, now time.Time, found func(AuditState)) (stmt sqldb.Stmt, ok bool) {
	state, known := auditStates[kind]
	if !known || len(key) == 0 || !storable(key) {
		return sqldb.Stmt{}, false
	}
	args := state.args(key)
	if args == nil {
		return sqldb.Stmt{}, false
	}
	stmt = s.stmt(state.name, args...)
	stmt.Row = readRow(func(a AuditState) {
		if kind == "schedules" && a.Spec != nil {
			a.Spec = withoutState(*a.Spec)
		}
		if a.At != nil {
			utc := a.At.UTC()
			a.At = &utc
		}
		a.refine(kind, now)
		found(a)
	}, func(a *AuditState) []any {
		return []any{&a.Name, &a.Version, &a.Status, &a.Step, &a.Attempts, &a.At, &a.Spec}
	})
	return stmt, true
}

// refine derives the exact status of waiting work.
func (a *AuditState) refine(kind string, now time.Time) {
	if a.Status == nil || !slices.Contains([]string{HookKind, TaskKind, AlarmKind, "timers"}, kind) {
		return
	}
	status, attempts, due := *a.Status, 0, now
	if kind == TaskKind {
		status = taskWords.status(status)
	}
	if a.Attempts != nil {
		attempts = int(*a.Attempts)
	}
	if a.At != nil {
		due = *a.At
	}
	status = Refine(status, attempts, due, now)
	a.Status = &status
}

// withoutState returns the spec of a schedule with the size of the initial state instead of the
// state. It returns nil for a spec that cannot be read.
func withoutState(spec string) *string {
	var fields, start map[string]json.RawMessage
	if json.Unmarshal([]byte(spec), &fields) != nil {
		return nil
	}
	if fields["start"] != nil {
		var state string
		if json.Unmarshal(fields["start"], &start) != nil || start["State"] != nil && json.Unmarshal(start["State"], &state) != nil {
			return nil
		}
		start["State"] = fmt.Appendf(nil, `{"bytes":%d}`, len(state))
		raw, err := json.Marshal(start)
		if err != nil {
			return nil
		}
		fields["start"] = raw
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	text := string(raw)
	return &text
}

// storable reports whether PostgreSQL accepts the texts.
func storable(texts []string) bool {
	for _, text := range texts {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

func textArgs(key []string) []any { return []any{key[0]} }

func uuidArgs(key []string) []any {
	if len(key[0]) != 36 || uuid.Validate(key[0]) != nil {
		return nil
	}
	return []any{key[0]}
}

func numberArgs(key []string) []any {
	n, err := strconv.ParseInt(key[0], 10, 64)
	if err != nil {
		return nil
	}
	return []any{n}
}

func pairArgs(key []string) []any {
	if len(key) < 2 {
		return nil
	}
	return []any{key[0], key[1]}
}

// alarmArgs converts the key of an alarm: its id, or the type and id of its actor followed by
// its id.
func alarmArgs(key []string) []any {
	if len(key) == 3 {
		return []any{key[0], key[1], "alarm", key[2]}
	}
	if parts := strings.SplitN(key[0], "/", 3); len(parts) == 3 {
		return []any{parts[0], parts[1], "alarm", parts[2]}
	}
	return []any{"", "", "alarm", key[0]}
}

func timerArgs(key []string) []any {
	if len(key) < 3 {
		return nil
	}
	return []any{key[0], key[1], "timer", key[2]}
}

func definitionArgs(key []string) []any {
	if len(key) < 2 {
		return nil
	}
	version, err := strconv.ParseInt(key[1], 10, 32)
	if err != nil {
		return nil
	}
	return []any{key[0], version}
}
