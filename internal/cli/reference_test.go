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

Generated from the program; ` + "`perdure <command> --help`" + ` prints the same text. Results go to stdout, progress and errors to stderr. ` + "`--json`" + ` prints JSON, and
errors as one JSON object. Every flag can be set by the environment: see [configuration](configuration.md). ` + "`perdure completion`" + ` sets up your shell.

| exit code | meaning |
|---|---|
`

func TestTheReferenceOfCommandsIsWhatTheyAre(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(cliIntro)
	for _, line := range strings.Split(exitHelp, "\n")[2:] {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		fmt.Fprintf(&b, "| %s | %s |\n", code, strings.TrimSpace(meaning))
	}
	writeLocal(&b)
	writeCommand(&b, reference())
	expectPage(t, "cli.md", b.String())
}

// serverIntro is about --server.
const serverIntro = `
## With a server or without

Commands that read or change work use only the [HTTP API](http.md). With ` + "`--server`" + ` (PERDURE_SERVER) they call a server, with PERDURE_TOKEN as the API
token. Without it, they open the database that ` + "`--dsn`" + ` names and use the same API within the process, with the role admin. Output, ` + "`--json`" + ` and
exit codes are the same. Only ` + "`--machine`" + `, a file with a statechart that is not stored in the database, requires a database. A command line with ` + "`--dsn`" + `
ignores a server in the environment.

Changes on the database are in the audit log under the user of the operating system (` + "`os:ann`" + `) and the name of the command (` + "`fsm cancel`" + `). Changes
through a server are recorded under the API token and the name of the operation (` + "`cancel-instance`" + `).

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
		writeLong(b, strings.TrimSuffix(cmd.Long, "\n\n"+exitHelp))
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

// writeLong writes a help text. Indented paragraphs become code blocks.
func writeLong(b *strings.Builder, text string) {
	for i, p := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if strings.HasPrefix(p, "  ") {
			fmt.Fprintf(b, "```\n%s\n```\n", p)
		} else {
			fmt.Fprintf(b, "%s\n", escape(p))
		}
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

Generated from the program. An environment variable can set every flag. For mounted secrets, the variable with the suffix ` + "`_FILE`" + ` names a file with the
value. A flag on the command line takes precedence over the variable, and the variable over the file. ` + "`--yes`" + `, which confirms an irreversible action, has no
variable. The program warns about variables with the prefix ` + "`PERDURE_`" + ` that set nothing. There is no configuration file.

## Secrets

Secrets have no flags, because all users of the host can see flags.

| variable | meaning |
|---|---|
`

const signalsSection = `
## Signals

| signal | reaction of ` + "`perdure serve`" + ` |
|---|---|
| SIGTERM, SIGINT | The first signal drains: the process stops claiming work and waits for running work for up to ` + "`--drain-timeout`" + `. The listener stays open until load balancers that poll ` + "`/readyz`" + ` have noticed, for up to ` + "`--drain-grace`" + `. The second signal ends the process immediately. |
| SIGHUP | Reloads, without interruption, the files of ` + "`--tls-cert` and `--tls-key`, and of `PERDURE_WEBHOOK_SECRETS_FILE` and `PERDURE_LOG_LEVEL_FILE`" + `. |

If a file cannot be read after a SIGHUP, its old value stays in use and an error is logged. Secrets for email and SMS that are in files are read at each use, and
API tokens are in the database: neither needs a signal. All other settings, including encryption keys, are read when the process starts. Other commands, including
` + "`perdure dev`" + `, end with their terminal.
`

// secrets explains the variables that have no flag.
var secrets = map[string]string{
	smtpPassword:   "password of `--smtp-username`",
	resendKey:      "API key of Resend, for `--email resend`",
	twilioToken:    "auth token of Twilio, for `--sms twilio`",
	encryptionKeys: "encryption keys of payloads, `id:base64` of 32 bytes; the first key encrypts; see [security](../security.md#encryption-of-payloads-at-rest)",
	webhookSecrets: "secrets that sign webhooks",
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
	fmt.Fprintf(&b, "\n`OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables of OpenTelemetry enable traces. `NO_COLOR` is the same as `--no-color`.\n")
	b.WriteString(signalsSection)
	for _, path := range []string{"perdure", "perdure serve", "perdure dev"} {
		cmd, _, err := reference().Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| flag | variable | default | |\n|---|---|---|---|\n", map[bool]string{true: "All commands", false: path}[path == "perdure"])
		writeVariables(&b, cmd.NonInheritedFlags())
	}
	b.WriteString("\n## Other commands\n\nVariables of the flags of the other [commands](cli.md):\n\n| variable | commands |\n|---|---|\n")
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
