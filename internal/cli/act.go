package cli

import (
	"os"
	"os/user"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/clock"
)

// noActs are the commands that are no acts of an operator, though they may write.
var noActs = map[string]bool{"serve": true, "dev": true, "bench": true, "migrate": true, "chart": true, "doctor": true, "healthcheck": true, "completion": true}

// acting lets what a command commits be in the audit log.
func (a *app) acting(cmd *cobra.Command, args []string) {
	path := strings.Fields(cmd.CommandPath())[1:] // without the name of the program
	if len(path) == 0 || noActs[path[0]] {
		return
	}
	who, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		host = name
	}
	target := strings.Join(args, " ")
	if target == "" {
		target = strings.Join(path, " ")
	}
	act := &audit.Act{
		Entry: audit.Entry{
			At: clock.System.Now(), Action: strings.Join(path, " "), Kind: kindOf(path[0]), Principal: "os:" + who, Label: who, Role: "admin",
			Via: "cli", Address: host, Reason: a.reasonOf(cmd),
		},
		NewID:   func() string { return uuid.Must(uuid.NewV7()).String() },
		Targets: func() []audit.Target { return []audit.Target{{ID: target}} },
	}
	cmd.SetContext(audit.With(cmd.Context(), act))
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
