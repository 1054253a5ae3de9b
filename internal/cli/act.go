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

// osUser is before the name of a user of the operating system in the audit log.
const osUser = "os:"

// acting lets what a command commits be in the audit log. The API writes the entries of
// its requests; on the database they have the name of the command.
func (a *app) acting(cmd *cobra.Command) {
	effect := effects[pathOf(cmd)]
	if !effect.acts {
		return
	}
	if effect.local == "" {
		cmd.SetContext(audit.WithAction(cmd.Context(), pathOf(cmd)))
		return
	}
	who, host := operatorHere()
	group, _, _ := strings.Cut(pathOf(cmd), " ")
	cmd.SetContext(audit.With(cmd.Context(), &audit.Act{
		Entry: audit.Entry{
			At: clock.System.Now(), Action: pathOf(cmd), Kind: group, Principal: osUser + who, Label: who, Role: "admin",
			Via: "cli", Address: host, Reason: a.reasonOf(cmd),
		},
		NewID:   func() string { return uuid.Must(uuid.NewV7()).String() },
		Targets: func() []audit.Target { return []audit.Target{{ID: pathOf(cmd)}} },
	}))
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

// reasonOf returns what the command was given as --reason.
func (a *app) reasonOf(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("reason"); f != nil {
		return f.Value.String()
	}
	return a.reason
}
