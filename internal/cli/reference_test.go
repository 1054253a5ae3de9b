package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the pages of the documentation that are made from the commands")

// expectPage compares a page of the documentation with what the code says, or
// writes it.
func expectPage(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "reference", name)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference/%s is not what the code says (%v); run go test ./internal/cli -run Reference -update", name, err)
	}
}

const cliIntro = `# Command line

Made from the program itself; ` + "`perdure <command> --help`" + ` says the same. Results go to stdout, progress and errors to stderr. ` + "`--json`" + ` prints JSON, and
errors as one JSON object. Every flag can be set by the environment: see [configuration](configuration.md). ` + "`perdure completion`" + ` sets up your shell.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | wrong usage |
| 3 | not found |
| 4 | a condition does not hold: not migrated, entries gone, ended, changed meanwhile |
| 5 | not authorized |
| 7 | the database or the server cannot be reached |
| 124 | timed out |
| 130, 143 | interrupted, terminated |
`

func TestTheReferenceOfCommandsIsWhatTheyAre(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(cliIntro)
	writeLocal(&b)
	writeCommand(&b, reference())
	expectPage(t, "cli.md", b.String())
}

// serverIntro is about --server.
const serverIntro = `
## With a server or without

Commands that look at work or change it speak to the [HTTP API](http.md) only. With ` + "`--server`" + ` (PERDURE_SERVER) they use a server, and PERDURE_TOKEN is the
token. Without, they open the database that ` + "`--dsn`" + ` names and use the same API within the process, with the rights of an administrator. Output, ` + "`--json`" + ` and
exit codes are the same. Only ` + "`--machine`" + `, the file of a machine that no program serves, is for a database. A server in the environment is not used by a command
whose line has ` + "`--dsn`" + `.

The audit log has acts on the database under the user of the operating system (` + "`os:ann`" + `) and the name of the command (` + "`fsm cancel`" + `), acts through a server
under the token and the name of the operation (` + "`cancel-instance`" + `).

These commands do not use the API:

| command | why |
|---|---|
`

// writeLocal lists the commands that do not use the API.
func writeLocal(b *strings.Builder) {
	b.WriteString(serverIntro)
	for _, path := range slices.Sorted(maps.Keys(effects)) {
		if why := effects[path].local; why != "" {
			fmt.Fprintf(b, "| `%s` | %s |\n", path, why)
		}
	}
}

// reference returns all commands, without those that cobra adds.
func reference() *cobra.Command { return (&app{}).root() }

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden {
		return
	}
	level := "###"
	if !cmd.HasParent() || !cmd.Parent().HasParent() {
		level = "##"
	}
	fmt.Fprintf(b, "\n%s %s\n\n", level, cmd.CommandPath())
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n", escape(cmd.Long))
	} else {
		fmt.Fprintf(b, "%s.\n", escape(strings.TrimSuffix(cmd.Short, ".")))
	}
	if !cmd.HasSubCommands() || cmd.Use != cmd.Name() || strings.Contains(cmd.CommandPath(), "dev") {
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.Example)
	}
	writeFlags(b, cmd.NonInheritedFlags())
	for _, c := range cmd.Commands() {
		writeCommand(b, c)
	}
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	head := "\n| flag | type | default | |\n|---|---|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		fmt.Fprintf(b, "%s| `--%s` | %s | %s | %s |\n", head, f.Name, f.Value.Type(), defaultOf(f), escape(f.Usage))
		head = ""
	})
}

func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	return "`" + f.DefValue + "`"
}

// escape keeps Markdown from taking a text for markup.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "|", "\\|", "*", "\\*").Replace(text)
}

const configurationIntro = `# Configuration

Made from the program itself. Every flag can be set by a variable of the environment, or by a file whose name is in the variable with ` + "`_FILE`" + `, for
secrets that are mounted. A flag on the command line wins over the variable, the variable over the file. ` + "`--yes`" + `, the consent to what cannot be undone,
must be given each time. A variable with our prefix that sets nothing is warned of. There is no configuration file.

## Secrets

They have no flags: flags are seen by everybody on the machine.

| variable | what it is |
|---|---|
`

const signalsSection = `
## Signals

| signal | what ` + "`perdure serve`" + ` does |
|---|---|
| SIGTERM, SIGINT | the first one drains: nothing more is claimed, and what runs may end within ` + "`--drain-timeout`" + `; the second one ends the process at once |
| SIGHUP | reads again, without a pause, the files of ` + "`--tls-cert` and `--tls-key`, and those of `PERDURE_WEBHOOK_SECRETS_FILE` and `PERDURE_LOG_LEVEL_FILE`" + ` |

After a SIGHUP, what cannot be read stays as it was, and the log says so. Secrets of mail and SMS that are in files are read whenever they are needed, and
tokens are in the database, so neither needs a signal. Everything else, keys of encryption too, is read when the process starts. Other commands, ` + "`perdure dev`" + `
too, end with their terminal.
`

// secrets explains the variables that have no flag.
var secrets = map[string]string{
	smtpPassword:   "the password of `--smtp-username`",
	resendKey:      "the API key of Resend, for `--email resend`",
	twilioToken:    "the auth token of Twilio, for `--sms twilio`",
	encryptionKeys: "keys that payloads are encrypted with, `id:base64` of 32 bytes, the first one encrypts; see [security](../security.md#encryption-of-payloads-at-rest)",
	webhookSecrets: "secrets that webhooks are signed with",
}

func TestTheReferenceOfConfigurationIsWhatItIs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(configurationIntro)
	for _, name := range slices.Sorted(slices.Values(secretVariables)) {
		if secrets[name] == "" {
			t.Errorf("%s is not explained", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, secrets[name])
	}
	fmt.Fprintf(&b, "\n`OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables of OpenTelemetry switch traces on. `NO_COLOR` is the same as `--no-color`.\n")
	b.WriteString(signalsSection)
	for _, path := range []string{"perdure", "perdure serve", "perdure dev"} {
		cmd, _, err := reference().Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | |\n|---|---|---|---|\n", map[bool]string{true: "All commands", false: path}[path == "perdure"])
		writeVariables(&b, cmd.NonInheritedFlags())
	}
	b.WriteString("\n## Other commands\n\nThe flags of all [commands](cli.md), by the same rule:\n\n| variable | commands |\n|---|---|\n")
	writeOthers(&b)
	expectPage(t, "configuration.md", b.String())
}

func writeVariables(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if names := variables(f.Name); len(names) > 0 {
			fmt.Fprintf(b, "| `--%s` | `%s` | %s | %s |\n", f.Name, strings.Join(names, "`, `"), defaultOf(f), escape(f.Usage))
		}
	})
}

func writeOthers(b *strings.Builder) {
	users := map[string][]string{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.HasParent() && path != "perdure serve" && path != "perdure dev" {
			cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
				for _, name := range variables(f.Name) {
					users[name] = append(users[name], "`"+strings.TrimPrefix(path, "perdure ")+"`")
				}
			})
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(reference())
	var names []string
	for name := range users {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.Join(users[name], ", "))
	}
}
