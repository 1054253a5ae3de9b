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

// osUser is the prefix of operating system users in the audit log.
const osUser = "os:"

// acting makes the changes of a command appear in the audit log. The API writes the entries
// of its requests; an API within this process uses the name of the command as the action.
// For commands without the API, acting sets the entry.
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

// reasonOf returns the value of --reason.
func (a *app) reasonOf(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("reason"); f != nil {
		return f.Value.String()
	}
	return a.reason
}
