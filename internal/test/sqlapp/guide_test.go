package sqlapp_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// The statements of the guide run in order: the first and those of the owner as the owner, the
// others as the application. The Python and Ruby of the guide are in the programs that the tests run.
func TestTheGuideRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.spawn(t, "front")
	f.exec(t, "create schema app", "grant usage, create on schema app to "+f.role)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "sql.md"))
	enginetest.NoError(t, err)
	programs := ""
	for _, name := range []string{"psycopg_app.py", "django_app.py", "rails_app.rb"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		enginetest.NoError(t, err)
		programs += string(text)
	}
	ran := 0
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		switch block[1] {
		case "sql":
			text := strings.ReplaceAll(block[2], "create role shop_app login;", "")
			text = strings.ReplaceAll(text, "shop_app", f.role)
			conn := f.app
			if strings.Contains(text, "perdure.grant_") || strings.Contains(text, "perdure.notify_") || strings.Contains(text, "perdure.v1_") {
				conn = f.owner
			}
			if _, err := conn.Exec(enginetest.Context(t), text); err != nil {
				t.Errorf("%v:\n%s", err, text)
			}
			ran++
		case "python", "ruby":
			if strings.HasPrefix(block[2], "Order.transaction") {
				continue // the program has it with the items of the test
			}
			if !strings.Contains(programs, block[2]) {
				t.Errorf("no program in testdata has:\n%s", block[2])
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d blocks ran", ran)
	}
	f.runs(t, "begin 1", "mail 3")
}
