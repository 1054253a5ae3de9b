package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// doorChart opens with the right key and closes by itself.
const doorChart = `{
	"id": "door", "initial": "closed", "context": {"opened": 0},
	"states": {
		"closed": {"on": {"OPEN": {"target": "open", "guard": {"type": "expr", "params": {"when": "event.key == 'gold'"}}}}},
		"open": {
			"entry": [
				{"type": "xstate.assign", "params": {"assignment": {"opened": {"$expr": "context.opened + 1"}}}},
				{"type": "ring", "params": {"times": 2}}
			],
			"after": {"5000": "closed"},
			"on": {"BREAK": "checking"}
		},
		"checking": {"invoke": {"id": "check", "src": "inspect", "onDone": "closed", "onError": "broken"}},
		"broken": {"type": "final"}
	}
}`

func chartFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pipe runs a command line with commands on its standard input.
func pipe(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr, nil)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestChartCheck(t *testing.T) {
	t.Parallel()
	good := chartFile(t, doorChart)
	run(t, "chart", "check", good, "--allow-unknown").want(t, 0, "door is valid", "2 events")
	strict := run(t, "chart", "check", good)
	strict.want(t, exitFailure, "machine.states.open.entry[1]", "ring", "machine.states.checking.invoke", "inspect")
	bad := chartFile(t, `{"id":"x","initial":"a","states":{"a":{"after":{"delay":1000,"target":"b"},"on":{"E":null}},"b":{}}}`)
	run(t, "chart", "check", bad).want(t, exitFailure, "machine.states.a.after", "machine.states.a.on.E")
	result := run(t, "chart", "check", bad, "--json")
	if problems := result.decode(t)["problems"].([]any); result.code != exitFailure || len(problems) < 2 || problems[0].(map[string]any)["path"] == "" {
		t.Errorf("problems: %v", problems)
	}
	if result.stderr != "" {
		t.Errorf("the problems are told twice: %s", result.stderr)
	}
	pipe(t, doorChart, "chart", "check", "-", "--allow-unknown").want(t, 0, "door is valid")
	run(t, "chart", "check", chartFile(t, "{")).want(t, exitFailure, "machine")
	run(t, "chart", "check", "nowhere.json").wantError(t, exitNotFound, "nowhere.json")
	deep := strings.Repeat(`{"states":{"a":`, 10_000) + "{}" + strings.Repeat("}}", 10_000)
	run(t, "chart", "check", chartFile(t, deep)).want(t, exitFailure, "deep")
}

func TestChartDraw(t *testing.T) {
	t.Parallel()
	file := chartFile(t, doorChart)
	drawn := run(t, "chart", "draw", file, "--active", "door.open")
	drawn.want(t, 0, "<svg", "OPEN", "closed")
	out := filepath.Join(t.TempDir(), "door.svg")
	run(t, "chart", "draw", file, "-o", out, "--active", "door.open").want(t, 0, "door.svg")
	written, err := os.ReadFile(out)
	if err != nil || string(written) != drawn.stdout {
		t.Errorf("the file differs from what is printed: %v", err)
	}
	run(t, "chart", "draw", chartFile(t, "[]")).wantError(t, exitUsage, "machine")
}

func TestChartRun(t *testing.T) {
	t.Parallel()
	file := chartFile(t, doorChart)
	trial := pipe(t, `# a comment
send OPEN {"key": "tin"}
send OPEN {"key": "gold"}
advance 4999
next
send OPEN {"key": "gold"}
send BREAK
finish check "fine"
send OPEN {"key": "gold"}
send BREAK
fail check "rust"
events
quit
send OPEN
`, "chart", "run", file)
	trial.want(t, 0,
		"0s  closed\n  context {\"opened\":0}\n0s  closed", // the wrong key
		"  effect ring {\"times\":2}\n0s  open\n  context {\"opened\":1}\n  timer at 5s xstate.after.5000.door.open (state door.open, target door.closed)",
		"4.999s  open", "5s  closed", "invocation inspect starts at check", "5s  broken  done", "BREAK OPEN",
	)
	if n := strings.Count(trial.stdout, "effect ring"); n != 3 {
		t.Errorf("the bell rang %d times", n)
	}
}

func TestChartRunTellsWhatItCannotDo(t *testing.T) {
	t.Parallel()
	file := chartFile(t, doorChart)
	for _, line := range []string{
		"open", "send", "send OPEN 7", "send OPEN {", "send xstate.stop", "advance", "advance -1", "advance soon", "next", "finish check {",
	} {
		trial := pipe(t, line+"\nstate\n", "chart", "run", file)
		if trial.code != exitFailure || strings.Count(trial.stderr, "\n") != 1 || strings.Count(trial.stdout, "0s  closed") != 2 {
			t.Errorf("%q: exit code %d\n%s%s", line, trial.code, trial.stdout, trial.stderr)
		}
	}
	pipe(t, "", "chart", "run", "-").wantError(t, exitUsage, "standard input")
	pipe(t, "", "chart", "run", file, "--input", "{").wantError(t, exitUsage, "--input")
	pipe(t, "help\nsnapshot\n", "chart", "run", file).want(t, 0, "advance TIME", `"value":"closed"`)
}

func TestChartRunAsJSON(t *testing.T) {
	t.Parallel()
	trial := pipe(t, "send OPEN {\"key\":\"gold\"}\nadvance 5s\n", "chart", "run", chartFile(t, doorChart), "--json")
	lines := strings.Split(strings.TrimSpace(trial.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), trial.stdout)
	}
	var open struct {
		Now    int64
		State  any
		Timers []struct{ Due int64 }
		Step   struct{ Effects []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(lines[1]), &open); err != nil {
		t.Fatal(err)
	}
	if open.State != "open" || len(open.Timers) != 1 || open.Timers[0].Due != 5000 || open.Step.Effects[0].Name != "ring" {
		t.Errorf("after OPEN: %s", lines[1])
	}
}
