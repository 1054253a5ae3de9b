package cli

import (
	_ "embed" // the skeleton of a business process
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/task"
)

func (a *app) taskEnqueue() *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use: "enqueue <type> <payload>", Short: "Enqueue a task with a JSON object as its payload", Args: cobra.ExactArgs(2),
		Long: "Enqueues a task. The payload is a JSON object; the payload - is read from standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			payload := []byte(args[1])
			if args[1] == "-" {
				var err error
				if payload, err = io.ReadAll(cmd.InOrStdin()); err != nil {
					return err
				}
			}
			if !json.Valid(payload) {
				return usagef("payload must be JSON")
			}
			body := api.TaskInput{Type: args[0], Payload: payload, Delay: api.Duration(delay)}
			return send(a, cmd, http.MethodPost, "/v1/tasks", body, func(w io.Writer, t api.Acted) { fmt.Fprintf(w, "task %s is enqueued\n", t.ID) })
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "delay until the task is due")
	return cmd
}

func (a *app) taskPurge() *cobra.Command {
	return a.purge("purge", "Remove old finished tasks and old errors", "/v1/tasks/purge",
		"minimum time since the tasks finished, for example 30d; on PostgreSQL at least 1h for tasks",
		"remove failed and quarantined tasks instead of done and cancelled ones, and no errors",
		func(n, errs int64) string {
			return fmt.Sprintf("removed %s and %s", count(int(n), "task", "tasks"), count(int(errs), "error", "errors"))
		})
}

func (a *app) taskLint() *cobra.Command {
	return &cobra.Command{
		Use: "lint", Short: "Check the privileges of the worker's role on PostgreSQL", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				admin, err := task.NewAdmin(eng)
				if err != nil {
					return err
				}
				problems, err := admin.Lint(cmd.Context())
				if err != nil {
					return err
				}
				err = a.show(map[string]any{"problems": append([]string{}, problems...)}, func(w io.Writer) {
					for _, p := range problems {
						fmt.Fprintln(w, plain(p))
					}
					if len(problems) == 0 {
						fmt.Fprintln(w, "the worker's role has exactly the required privileges")
					}
				})
				if err == nil && len(problems) > 0 {
					err = errReported
				}
				return err
			})
		},
	}
}

//go:embed process.sql
var processSkeleton string

var processName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,29}$`)

func (a *app) taskNewProcess() *cobra.Command {
	var dir, schema string
	cmd := &cobra.Command{
		Use: "new-process <name>", Short: "Write a migration with a skeleton business process", Args: cobra.ExactArgs(1),
		Long: "Writes <name>.sql, a migration for PostgreSQL: tables for the facts, functions that read\n" +
			"them, handlers, a supervisor, a kickoff function and the grants. The skeleton works\n" +
			"unchanged. Replace its message and its task type with your own. The guide to tasks\n" +
			"explains each part.",
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if schema == "" {
				schema = name
			}
			if !processName.MatchString(name) || !processName.MatchString(schema) {
				return usagef("name and schema must have 1 to 30 lower-case letters, digits and underscores, and start with a letter")
			}
			switch schema {
			case "queues", "internal", "comms", "perdure", "public":
				return usagef("schema %q is reserved", schema)
			}
			file := filepath.Join(dir, name+".sql")
			if err := writeNew(file, strings.NewReplacer("{name}", name, "{schema}", schema).Replace(processSkeleton)); err != nil {
				return err
			}
			return a.show(map[string]string{"file": file}, func(w io.Writer) { fmt.Fprintln(w, "wrote", file) })
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "directory for the file")
	cmd.Flags().StringVar(&schema, "schema", "", "schema of the business process (default: its name)")
	return cmd
}

// writeNew writes a file that must not exist.
func writeNew(name, content string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return usagef("%s already exists", name)
		}
		return err
	}
	_, err = io.WriteString(file, content)
	return errors.Join(err, file.Close())
}
