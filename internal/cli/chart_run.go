package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/statechart"
)

const chartHelp = `send EVENT [JSON]    send an event; JSON is an object with its other keys
advance TIME         advance the clock: 5s, 2h, or a number of milliseconds
next                 advance the clock until the next timer fires
finish PATH [JSON]   finish the invocation at PATH with an output
fail PATH [JSON]     finish the invocation at PATH with an error
state                show the current state
events               list the events of the statechart
snapshot             print the snapshot that would be stored
help, quit
`

func (a *app) chartRun() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use: "run <file>", Short: "Simulate a statechart on a virtual clock", Args: cobra.ExactArgs(1),
		Long: "Simulates a statechart on a virtual clock. Commands are read from standard input, one per\nline:\n\n" + indent(chartHelp) +
			"\nEffects and invocations are shown and not run. Nothing is stored. With --json each\ntransition is one line of JSON. Exits with 1 if a command failed and standard input is\nnot a terminal.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				return usagef("file must not be -: the commands are read from standard input")
			}
			raw, err := readDocument(cmd, args[0])
			if err != nil {
				return err
			}
			machine, err := statechart.Parse(raw, nil, lookOnly)
			if err != nil {
				return err
			}
			value, err := jsonArgument("--input", input)
			if err != nil {
				return err
			}
			return a.trial(machine, value, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&input, "input", "null", "input of the statechart, as JSON")
	return cmd
}

// indent returns a text with every line indented.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// jsonArgument parses a JSON value, with exact integers.
func jsonArgument(name, text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return nil, usagef("%s must be JSON, got %s", name, text)
	}
	return statechart.Canonical(value)
}

// trial is an interactive run of a statechart.
type trial struct {
	*app
	machine *statechart.Machine
	sim     *statechart.Simulation
	failed  bool
}

// errQuit ends a trial.
var errQuit = errors.New("quit")

func (a *app) trial(machine *statechart.Machine, input any, in io.Reader) error {
	sim, step, err := statechart.Simulate(machine, input, nil)
	if err != nil {
		return err
	}
	t := &trial{app: a, machine: machine, sim: sim}
	if err := t.report(step); err != nil {
		return err
	}
	typed := isTerminal(in)
	for lines := bufio.NewScanner(in); t.prompt(typed) && lines.Scan(); {
		err := t.run(strings.TrimSpace(lines.Text()))
		if errors.Is(err, errQuit) {
			break
		}
		if err != nil {
			t.failed = true
			fmt.Fprintln(t.err, "perdure: "+plain(strings.Join(strings.Fields(err.Error()), " ")))
		}
	}
	if t.failed && !typed {
		return errReported
	}
	return nil
}

func (t *trial) prompt(typed bool) bool {
	if typed {
		fmt.Fprint(t.err, "> ")
	}
	return true
}

// run runs one command.
func (t *trial) run(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch verb {
	case "":
		return nil
	case "send", "s":
		return t.send(rest)
	case "advance", "a":
		return t.advance(rest)
	case "next", "n":
		return t.next()
	case "finish", "fail":
		return t.finish(rest, verb == "fail")
	case "state":
		return t.report(&statechart.Step{})
	case "events":
		return t.show(map[string]any{"events": t.machine.Events()}, func(w io.Writer) { fmt.Fprintln(w, strings.Join(t.machine.Events(), " ")) })
	case "snapshot":
		raw, err := t.sim.Tree.Snapshot()
		if err == nil {
			_, err = fmt.Fprintf(t.out, "%s\n", raw)
		}
		return err
	case "help", "?":
		_, err := fmt.Fprint(t.out, chartHelp)
		return err
	case "quit", "exit", "q":
		return errQuit
	}
	if strings.HasPrefix(verb, "#") {
		return nil
	}
	return fmt.Errorf("unknown command %q: try help", verb)
}

func (t *trial) send(rest string) error {
	typ, data, _ := strings.Cut(rest, " ")
	if typ == "" {
		return errors.New("event is required (example: send OPEN {\"key\": \"gold\"})")
	}
	e := statechart.Event{Type: typ}
	if data = strings.TrimSpace(data); data != "" {
		value, err := jsonArgument("event", data)
		if err != nil {
			return err
		}
		keys, ok := value.(map[string]any)
		if !ok {
			return errors.New("event must be a JSON object")
		}
		delete(keys, "type")
		e.Data = keys
	}
	return t.reportOf(t.sim.Send(e))
}

func (t *trial) advance(rest string) error {
	ms, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return errors.New("time must be a duration such as 5s or 2h, or a number of milliseconds")
		}
		ms = d.Milliseconds()
	}
	if ms < 0 {
		return errors.New("time must not be negative")
	}
	return t.reportOf(t.sim.Advance(ms))
}

// next advances the time until the next timer fires.
func (t *trial) next() error {
	timers := t.sim.Timers()
	if len(timers) == 0 {
		return errors.New("no timer is pending")
	}
	return t.reportOf(t.sim.Advance(max(timers[0].Due-t.sim.Now, 0)))
}

func (t *trial) finish(rest string, failed bool) error {
	path, data, _ := strings.Cut(rest, " ")
	if data = strings.TrimSpace(data); data == "" {
		data = "null"
	}
	value, err := jsonArgument("result", data)
	if err != nil {
		return err
	}
	return t.reportOf(t.sim.Finish(path, statechart.Outcome{Output: value, Failed: failed}))
}

func (t *trial) reportOf(step *statechart.Step, err error) error {
	if err != nil {
		return err
	}
	return t.report(step)
}
