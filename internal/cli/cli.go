// Package cli is the command line: the commands, their flags and exit codes.
//
// Results go to stdout; progress, warnings and errors to stderr. The caller passes in the
// streams, the environment and the signals. So tests can run every command as a shell does.
package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Run runs the command that args name (without the program's own name) and returns the exit
// code. env has the form of os.Environ. A context that is cancelled with a *Interrupted
// ends the command gracefully.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{env: environment(env), out: stdout, err: stderr}
	root := a.root()                          //nolint:contextcheck // cobra passes the context to the commands
	root.SetArgs(append([]string{}, args...)) // for nil, cobra uses the arguments of the process
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exit(ctx, root.ExecuteContext(ctx))
}

// app is one run of the program.
type app struct {
	env      map[string]string
	out, err io.Writer

	dsn     string
	server  string
	bearer  string
	reason  string // for the audit log
	json    bool
	noColor bool
	// fromEnv has the flags that were set from the environment.
	fromEnv map[string]bool
	// running is true once the arguments are parsed. An earlier error is a usage error.
	running bool
}

func environment(env []string) map[string]string {
	all := make(map[string]string, len(env))
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

func (a *app) root() *cobra.Command {
	root := a.group("perdure", "Run durable background work on SQL databases",
		a.migrate(), a.token(), a.keys(), a.outbox(), a.hooks(), a.fsm(), a.schedule(), a.pause(), a.resume(), a.task(), a.actor(), a.alarm(), a.chart(), a.bench(), a.serve(), a.dev(), a.status(), a.nodes(), a.dead(), a.audit(), a.doctor(), a.healthcheck(), a.version())
	root.Long = "Perdure runs durable background work on the SQL database that you already have.\n\n" +
		"The environment can set every flag: PERDURE_LIMIT sets --limit, and PERDURE_LIMIT_FILE\n" +
		"names a file with its value. PERDURE_DATABASE_URL or DATABASE_URL sets --dsn.\n\n" +
		exitHelp
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.HiddenDefaultCmd = false
	flags := root.PersistentFlags()
	flags.StringVar(&a.dsn, "dsn", "", "database URL: sqlite:file.db, postgres://… or mysql://… (PERDURE_DATABASE_URL)")
	flags.StringVar(&a.server, "server", "", "URL of a server to use instead of the database, for example "+defaultServer)
	flags.StringVar(&a.bearer, "token", "", "API token for the server; prefer PERDURE_TOKEN or PERDURE_TOKEN_FILE, because other users can see flags")
	flags.StringVar(&a.reason, "reason", "", "reason of the change, for the audit log")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.BoolVar(&a.noColor, "no-color", false, "print without colors (NO_COLOR)")
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if e, known := effects[pathOf(cmd)]; known && e.local == "" && slices.Contains(args, "") {
			return usagef("arguments of %s must not be empty: see %q", cmd.CommandPath(), cmd.CommandPath()+" --help")
		}
		if err := a.bind(cmd.Flags()); err != nil {
			return err
		}
		a.warnUnknown(cmd.Root())
		a.reason = a.reasonOf(cmd)
		a.acting(cmd)
		a.running = true
		return nil
	}
	addExamples(root)
	a.refuseServer(root)
	a.offerCompletion(root)
	return root
}

// refuseServer makes commands that work only on the database refuse a --server on the
// command line. A server in the environment is ignored: it is for the other commands.
func (a *app) refuseServer(root *cobra.Command) {
	walk(root, func(cmd *cobra.Command) {
		path := pathOf(cmd)
		run := cmd.RunE
		if run == nil || effects[path].local == "" || !effects[path].database {
			return
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if a.server != "" && !a.fromEnv["server"] {
				return usagef("%s does not support --server (%s): use --dsn", cmd.CommandPath(), effects[path].local)
			}
			return run(cmd, args)
		}
	})
}

// pathOf returns the name of a command without the name of the program: "fsm list".
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// walk calls fn for a command and all commands below it.
func walk(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, c := range cmd.Commands() {
		walk(c, fn)
	}
}

// onlyHolds is the annotation of commands that only group other commands.
const onlyHolds = "perdure.holds"

// group returns a command that only groups other commands. cobra would respond to a
// misspelled subcommand with the help text and success.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2, Annotations: map[string]string{onlyHolds: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		return usagef("unknown command %q: did you mean %q?", cmd.CommandPath()+" "+name, similar[0])
	}
	return usagef("unknown command %q: see %q", cmd.CommandPath()+" "+name, cmd.CommandPath()+" --help")
}

// Commands returns the program's commands, for documentation.
func Commands() *cobra.Command { return (&app{env: map[string]string{}}).root() }

// Version returns the program's version.
func Version() string { return readBuild().Version }
