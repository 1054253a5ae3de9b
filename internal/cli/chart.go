package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

func (a *app) chart() *cobra.Command {
	return a.group("chart", "Check, draw and simulate statecharts without a database",
		a.chartCheck(), a.chartDraw(), a.chartRun())
}

// readDocument reads a file, or standard input if it is "-".
func readDocument(cmd *cobra.Command, file string) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, statechart.MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read statechart: %w", err)
	}
	return raw, nil
}

func (a *app) chartCheck() *cobra.Command {
	var unknown bool
	cmd := &cobra.Command{
		Use: "check <file>", Short: "Report all problems of a statechart", Args: cobra.ExactArgs(1),
		Long: "Reports every problem of a statechart with its path in the document. Exits with 1 if there\nis a problem. The file - is standard input. The functions that a program registers are\nnot known here: use --allow-unknown to accept their names.",
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readDocument(cmd, args[0])
			if err != nil {
				return err
			}
			machine, err := statechart.Parse(raw, nil, &statechart.Options{AllowUnknown: unknown})
			problems, err := problemsOf(err)
			if err != nil {
				return err
			}
			return a.showProblems(machine, problems)
		},
	}
	cmd.Flags().BoolVar(&unknown, "allow-unknown", false, "accept names of guards, actions, delays and actors that are not in the file")
	return cmd
}

// problemsOf returns the problems of a document.
func problemsOf(err error) ([]*fault.Invalid, error) {
	var all statechart.Problems
	var one *fault.Invalid
	switch {
	case errors.As(err, &all):
		return all, nil
	case errors.As(err, &one):
		return []*fault.Invalid{one}, nil
	}
	return nil, err
}

func (a *app) showProblems(machine *statechart.Machine, problems []*fault.Invalid) error {
	data := []map[string]string{}
	for _, p := range problems {
		data = append(data, map[string]string{"path": p.Field, "reason": p.Reason})
	}
	result := map[string]any{"valid": len(problems) == 0, "problems": data}
	if machine != nil {
		result["id"], result["events"], result["effects"], result["invocations"] = machine.ID(), machine.Events(), machine.Effects(), machine.Invocations()
	}
	err := a.show(result, func(w io.Writer) {
		for _, p := range problems {
			fmt.Fprintln(w, a.color(red, plain(p.Field))+": "+plain(p.Reason))
		}
		if len(problems) == 0 {
			fmt.Fprintf(w, "%s is valid: %s\n", plain(machine.ID()), count(len(machine.Events()), "event", "events"))
		}
	})
	if err == nil && len(problems) > 0 {
		return errReported
	}
	return err
}

func (a *app) chartDraw() *cobra.Command {
	var output string
	var active []string
	cmd := &cobra.Command{
		Use: "draw <file>", Short: "Draw a statechart as SVG", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readDocument(cmd, args[0])
			if err != nil {
				return err
			}
			machine, err := statechart.Parse(raw, nil, lookOnly)
			if err != nil {
				return err
			}
			drawing := statechart.SVG(machine, active)
			if output == "" || output == "-" {
				_, err := a.out.Write(drawing)
				return err
			}
			if err := os.WriteFile(output, drawing, 0o644); err != nil {
				return fmt.Errorf("write drawing: %w", err)
			}
			return a.show(map[string]any{"file": output, "bytes": len(drawing)}, func(w io.Writer) { fmt.Fprintln(w, output) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default: standard output)")
	cmd.Flags().StringSliceVar(&active, "active", nil, "ids of states to highlight, for example door.open")
	return cmd
}

// lookOnly also accepts statecharts that could not be registered, in order to show them.
var lookOnly = &statechart.Options{AllowUnknown: true, AllowUnreachable: true, AllowCycles: true}
