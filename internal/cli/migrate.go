package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
)

func (a *app) migrate() *cobra.Command {
	var script bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Create or update Perdure's own tables", Args: cobra.NoArgs,
		Long: "Creates or updates Perdure's own tables. The application can run at the same time, and\n" +
			"several processes can migrate concurrently. The application creates its own tables.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, err := a.database()
			if err != nil {
				return err
			}
			if script {
				return a.printMigrations(dsn)
			}
			return a.runMigrate(cmd.Context(), dsn)
		},
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the SQL without running it; only the kind of database in --dsn matters")
	return cmd
}

func (a *app) runMigrate(ctx context.Context, dsn string) error {
	a.progress("migrating…")
	eng, err := perdure.Open(ctx, dsn, nil)
	a.progress("")
	if err != nil {
		return err
	}
	done := host.Of(eng).Migrated
	if err := eng.Close(); err != nil {
		return err
	}
	result := map[string]any{"database": redacted(dsn), "status": "up to date", "from": done.From, "to": done.To}
	return a.show(result, func(w io.Writer) {
		fmt.Fprintf(w, "%s is up to date: %s\n", redacted(dsn), migrated(done.From, done.To))
	})
}

// migrated describes the result of a migration.
func migrated(from, to int) string {
	switch from {
	case to:
		return fmt.Sprintf("already at version %d", to)
	case 0:
		return fmt.Sprintf("created at version %d", to)
	default:
		return fmt.Sprintf("migrated from version %d to %d", from, to)
	}
}

func (a *app) printMigrations(dsn string) error {
	text, err := perdure.MigrationScript(dsn)
	if err != nil {
		return err
	}
	return a.show(map[string]string{"sql": text}, func(w io.Writer) { fmt.Fprint(w, text) })
}
