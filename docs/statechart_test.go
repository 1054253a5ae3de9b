package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/statechart"
)

// fenced finds the blocks of a language in a page.
func fenced(content, language string) []string {
	var all []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(content, -1) {
		all = append(all, match[1])
	}
	return all
}

func TestTheMachinesInTheGuideAreFine(t *testing.T) {
	t.Parallel()
	found := 0
	for page, content := range pages(t) {
		for _, document := range fenced(content, "json") {
			if !strings.Contains(document, `"states"`) {
				continue
			}
			found++
			if _, err := statechart.Parse([]byte(document), &statechart.Registry{Open: true}, nil); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, document)
			}
		}
	}
	if found == 0 {
		t.Error("no machines were found")
	}
}

// chartSession is a machine that is run in a shell: the commands, and what they print.
var chartSession = regexp.MustCompile(`(?s)^\$ perdure chart run \S+ <<END\n(.*?)\nEND\n(.*)$`)

func TestTheSessionInTheGuideIsTrue(t *testing.T) {
	t.Parallel()
	content := pages(t)[filepath.Join("docs", "guide", "statecharts.md")]
	machine := filepath.Join(t.TempDir(), "door.json")
	if err := os.WriteFile(machine, []byte(fenced(content, "json")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range fenced(content, "text") {
		match := chartSession.FindStringSubmatch(block)
		if match == nil {
			continue
		}
		found++
		var stdout, stderr bytes.Buffer
		code := cli.Run(t.Context(), []string{"chart", "run", machine}, strings.NewReader(match[1]), &stdout, &stderr, nil)
		if code != 0 || stdout.String() != match[2] {
			t.Errorf("exit code %d; the session prints\n%s%s\nand the page has\n%s", code, stdout.String(), stderr.String(), match[2])
		}
	}
	if found == 0 {
		t.Error("no session was found")
	}
}
