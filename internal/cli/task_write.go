package cli

import (
	_ "embed" // the skeleton of a business process
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
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
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				var ticket *task.Ticket
				err := eng.Update(cmd.Context(), func(tx *perdure.Tx) (err error) {
					ticket, err = task.Enqueue(tx, args[0], json.RawMessage(payload), &task.EnqueueOptions{Delay: delay})
					return err
				})
				if err != nil {
					return err
				}
				return a.show(map[string]string{"id": taskID(ticket.ID)}, func(w io.Writer) { fmt.Fprintf(w, "task %d is enqueued\n", ticket.ID) })
			})
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "when it is due, from now")
	return cmd
}

func (a *app) taskPurge() *cobra.Command {
	var age ageFlag
	var dead bool
	cmd := &cobra.Command{
		Use: "purge", Short: "Remove tasks that ended, and errors, some time ago", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is needed, for example 168h")
			}
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
				if dead {
					n, err := admin.PurgeDead(cmd.Context(), time.Duration(age))
					if err != nil {
						return err
					}
					return a.show(map[string]any{"tasks": n}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", count(int(n), "task", "tasks")) })
				}
				tasks, failures, err := admin.Purge(cmd.Context(), time.Duration(age))
				if err != nil {
					return err
				}
				return a.show(map[string]any{"tasks": tasks, "errors": failures}, func(w io.Writer) {
					fmt.Fprintf(w, "removed %s and %s\n", count(int(tasks), "task", "tasks"), count(int(failures), "error", "errors"))
				})
			})
		},
	}
	cmd.Flags().Var(&age, "older-than", "how long ago they must have ended, for example 30d; on PostgreSQL at least an hour for tasks")
	cmd.Flags().BoolVar(&dead, "dead", false, "remove failed and quarantined tasks instead of completed and cancelled ones")
	return cmd
}

func (a *app) taskLint() *cobra.Command {
	return &cobra.Command{
		Use: "lint", Short: "Check the rights of the worker's role on PostgreSQL", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tasks(cmd.Context(), func(admin *task.Admin) error {
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

// writeNew writes a file that is not there yet.
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
