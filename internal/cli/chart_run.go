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

const chartHelp = `send EVENT [JSON]    send an event, with the other keys of it as an object
advance TIME         let time pass: 5s, 2h, or a number of milliseconds
next                 let time pass until the next timer fires
finish PATH [JSON]   end the task at that path with an output
fail PATH [JSON]     end the task at that path with an error
state                show where the machine is
events               list the events that the machine knows
snapshot             print what would be stored
help, quit
`

func (a *app) chartRun() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use: "run <file>", Short: "Try a machine out on a virtual clock: send events, let time pass", Args: cobra.ExactArgs(1),
		Long: "Try a machine out on a virtual clock. Commands are read from standard input, one\nper line:\n\n" + chartHelp +
			"\nEffects and tasks are only shown. Nothing is stored. With --json each step is\none line of JSON. The exit code is 1 if a command that was not typed failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				return usagef("the machine cannot come from standard input, which has the commands")
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
	cmd.Flags().StringVar(&input, "input", "null", "the input of the machine, in JSON")
	return cmd
}

// jsonArgument parses a JSON value, with exact integers.
func jsonArgument(name, text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return nil, usagef("%s is not JSON: %s", name, text)
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
	return fmt.Errorf("%q is no command: try help", verb)
}

func (t *trial) send(rest string) error {
	typ, data, _ := strings.Cut(rest, " ")
	if typ == "" {
		return errors.New("send needs an event: send OPEN {\"key\": \"gold\"}")
	}
	e := statechart.Event{Type: typ}
	if data = strings.TrimSpace(data); data != "" {
		value, err := jsonArgument("the event", data)
		if err != nil {
			return err
		}
		keys, ok := value.(map[string]any)
		if !ok {
			return errors.New("the event is not an object")
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
			return errors.New("advance needs a time: 5s, 2h, or a number of milliseconds")
		}
		ms = d.Milliseconds()
	}
	if ms < 0 {
		return errors.New("time does not go back")
	}
	return t.reportOf(t.sim.Advance(ms))
}

// next advances the time until the next timer fires.
func (t *trial) next() error {
	timers := t.sim.Timers()
	if len(timers) == 0 {
		return errors.New("no timer waits")
	}
	return t.reportOf(t.sim.Advance(max(timers[0].Due-t.sim.Now, 0)))
}

func (t *trial) finish(rest string, failed bool) error {
	path, data, _ := strings.Cut(rest, " ")
	if data = strings.TrimSpace(data); data == "" {
		data = "null"
	}
	value, err := jsonArgument("the result", data)
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
