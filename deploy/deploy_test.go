// Package deploy_test keeps the files for deployment true: what they name exists.
package deploy_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/telemetry"
)

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var metric = regexp.MustCompile(`perdure_[a-z_]+`)

func TestTheDashboardShowsExactlyTheMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	content := read(t, filepath.Join("grafana", "perdure.json"))
	if !json.Valid([]byte(content)) {
		t.Fatal("it is not JSON")
	}
	shown := map[string]bool{}
	for _, name := range metric.FindAllString(content, -1) {
		shown[strings.TrimSuffix(name, "_bucket")] = true
	}
	for _, m := range telemetry.Metrics {
		if !shown[m.Name] {
			t.Errorf("%s is not shown", m.Name)
		}
		delete(shown, m.Name)
	}
	if len(shown) > 0 {
		t.Errorf("shown and not exported: %v", shown)
	}
}

var (
	variable = regexp.MustCompile(`\bPERDURE_[A-Z_]+`)
	flag     = regexp.MustCompile(`--[a-z][a-z-]+`)
)

// foreign are flags of other programs.
var foreign = map[string]bool{"--for": true, "--from": true, "--from-literal": true, "--build": true, "--rm": true, "--now": true, "--chown": true, "--interval": true, "--timeout": true, "--start-period": true}

func TestFlagsAndVariablesExist(t *testing.T) {
	t.Parallel()
	known := cli.Variables()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".json") {
			return err
		}
		content := read(t, path)
		for _, name := range variable.FindAllString(content, -1) {
			if !known[name] {
				t.Errorf("%s: nothing reads %s", path, name)
			}
		}
		for _, name := range flag.FindAllString(content, -1) {
			if !foreign[name] && !known["PERDURE_"+strings.ToUpper(strings.ReplaceAll(name[2:], "-", "_"))] {
				t.Errorf("%s: there is no flag %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheContainersCommandsExist(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "migrate", "healthcheck"} {
		if code := cli.Run(t.Context(), []string{command, "--help"}, strings.NewReader(""), io.Discard, io.Discard, nil); code != 0 {
			t.Errorf("%s: exit code %d", command, code)
		}
	}
}

// token is a command line of perdure in instructions and manifests.
var token = regexp.MustCompile(`(?:run --rm migrate|args: \[)\s*(token[^\]\n]*)`)

// The commands that create the first token are run as they are written, on a new database:
// first the migration, then the token, because a server on all addresses needs one.
func TestTheFirstTokenIsCreatedByTheInstructions(t *testing.T) {
	t.Parallel()
	for _, file := range []string{filepath.Join("kubernetes", "token.yaml"), filepath.Join("docker", "compose.yaml")} {
		found := token.FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s: no command creates a token", file)
		}
		env := []string{"PERDURE_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "app.db")}
		for _, args := range [][]string{{"migrate"}, strings.Fields(strings.ReplaceAll(found[1], ",", " "))} {
			var out strings.Builder
			if code := cli.Run(t.Context(), args, strings.NewReader(""), &out, &out, env); code != 0 {
				t.Errorf("%s: %v: exit code %d: %s", file, args, code, &out)
			}
		}
	}
}
