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
		Use: "enqueue <type> <payload>", Short: "Enqueue a task; the payload is a JSON object, or - to read it", Args: cobra.ExactArgs(2),
		Example: `  perdure task enqueue db_function '{"db_function": "comms.send_email_supervisor", "send_email_task_id": 7}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			payload := []byte(args[1])
			if args[1] == "-" {
				var err error
				if payload, err = io.ReadAll(cmd.InOrStdin()); err != nil {
					return err
				}
			}
			if !json.Valid(payload) {
				return usagef("the payload is not JSON")
			}
			body := api.TaskInput{Type: args[0], Payload: payload, Delay: api.Duration(delay)}
			return send(a, cmd, http.MethodPost, "/v1/tasks", body, func(w io.Writer, t api.Acted) { fmt.Fprintf(w, "task %s is enqueued\n", t.ID) })
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "when it is due, from now")
	return cmd
}

func (a *app) taskPurge() *cobra.Command {
	return a.purge("purge", "Remove tasks that ended, and errors, some time ago", "/v1/tasks/purge",
		"how long ago they must have ended, for example 30d; on PostgreSQL at least an hour for tasks",
		"remove failed and quarantined tasks instead of done and cancelled ones, and no errors",
		func(n, errs int64) string {
			return fmt.Sprintf("removed %s and %s", count(int(n), "task", "tasks"), count(int(errs), "error", "errors"))
		})
}

func (a *app) taskLint() *cobra.Command {
	return &cobra.Command{
		Use: "lint", Short: "Check the rights of the worker's role on PostgreSQL", Args: cobra.NoArgs,
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
						fmt.Fprintln(w, "the worker's role has what it needs and no more")
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
		Use: "new-process <name>", Short: "Write the skeleton of a business process, as a migration for PostgreSQL", Args: cobra.ExactArgs(1),
		Long: "Writes <name>.sql: tables for the facts, functions to read them, handlers, a supervisor,\n" +
			"a kickoff function and the grants. It works as it is; put your own message and your own\n" +
			"task type in. The guide to tasks explains each part.",
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if schema == "" {
				schema = name
			}
			if !processName.MatchString(name) || !processName.MatchString(schema) {
				return usagef("a process needs a name of up to 30 lower-case letters, digits and underscores")
			}
			switch schema {
			case "queues", "internal", "comms", "perdure", "public":
				return usagef("the schema %s is taken", schema)
			}
			file := filepath.Join(dir, name+".sql")
			if err := writeNew(file, strings.NewReplacer("{name}", name, "{schema}", schema).Replace(processSkeleton)); err != nil {
				return err
			}
			return a.show(map[string]string{"file": file}, func(w io.Writer) { fmt.Fprintln(w, "wrote", file) })
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "the directory for the file")
	cmd.Flags().StringVar(&schema, "schema", "", "the schema of the process (default: its name)")
	return cmd
}

// writeNew writes a file that must not exist.
func writeNew(name, content string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return usagef("%s exists already", name)
		}
		return err
	}
	_, err = io.WriteString(file, content)
	return errors.Join(err, file.Close())
}
