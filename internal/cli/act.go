package cli

import (
	"encoding/json"
	"os"
	"os/user"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// osUser is before the name of a user of the operating system in the audit log.
const osUser = "os:"

// acting lets what a command commits be in the audit log.
func (a *app) acting(cmd *cobra.Command, args []string) {
	path := strings.Fields(cmd.CommandPath())[1:] // without the name of the program
	if len(path) == 0 || !effects[strings.Join(path, " ")].acts {
		return
	}
	who, host := operatorHere()
	t := &target{kind: kindOf(path[0]), id: strings.Join(path, " ")}
	if len(args) > 0 { // those behind the first one may be payloads
		t.id, t.key = args[0], []string{args[0]}
	}
	if t.kind == "actors" {
		t.key = strings.SplitN(t.id, "/", 2)
	}
	act := &audit.Act{
		Entry: audit.Entry{
			At: clock.System.Now(), Action: strings.Join(path, " "), Kind: t.kind, Principal: osUser + who, Label: who, Role: "admin",
			Via: "cli", Address: host, Reason: a.reasonOf(cmd),
		},
		NewID:   func() string { return uuid.Must(uuid.NewV7()).String() },
		Targets: t.told,
	}
	a.target = t
	act.ReadBefore = func() []sqldb.Stmt { return t.read(&t.before) }
	act.ReadAfter = func() []sqldb.Stmt { return t.read(&t.after) }
	cmd.SetContext(audit.With(cmd.Context(), act))
}

// operatorHere returns the user of the operating system and the name of the host.
func operatorHere() (who, host string) {
	who, host = "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		host = name
	}
	return who, host
}

// target is what a command acts on.
type target struct {
	kind, id string
	// key is what its state is read by, nil if the command names nothing.
	key           []string
	store         *store.Store // once the database is open
	before, after json.RawMessage
}

// on says which thing a command with several ids acts on next.
func (a *app) on(id string) {
	if a.target != nil {
		a.target.id, a.target.key = id, []string{id}
	}
}

// read returns the statement that reads the thing into to.
func (t *target) read(to *json.RawMessage) []sqldb.Stmt {
	*to = nil
	if t.store == nil || !t.store.HasAudit() {
		return nil
	}
	stmt, ok := t.store.AuditState(t.kind, t.key, func(s store.AuditState) {
		*to, _ = json.Marshal(s) // texts, numbers and a time
	})
	if !ok {
		return nil
	}
	return []sqldb.Stmt{stmt}
}

func (t *target) told() []audit.Target {
	return []audit.Target{{ID: t.id, Before: t.before, After: t.after}}
}

// reasonOf returns what the command was given as --reason.
func (a *app) reasonOf(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("reason"); f != nil {
		return f.Value.String()
	}
	return a.reason
}

// kindOf returns the kind of the things that a group of commands is about, as the API
// calls it.
func kindOf(group string) string {
	kinds := map[string]string{"fsm": "instances", "task": "tasks", "actor": "actors", "alarm": "alarms", "token": "tokens"}
	if kind, ok := kinds[group]; ok {
		return kind
	}
	return group
}
