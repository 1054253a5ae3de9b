package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The first program of the README runs as it is, in an empty directory.
func TestTheProgramOfTheReadmeRunsInAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	_, program, found := strings.Cut(pages(t)["README.md"], "```go\n")
	if !found || !strings.HasPrefix(program, "package main\n") {
		t.Fatal("the first Go block of the README must be a program")
	}
	program, _, _ = strings.Cut(program, "\n```")
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": program,
		"go.sum":  string(sums), // nothing is downloaded
		"go.mod":  "module shop\n\ngo 1.26.0\n\nrequire github.com/perdure/perdure v0.0.0\n\nreplace github.com/perdure/perdure => " + module + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-s -w", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "welcome mail sent to ada@example.org\n") {
		t.Fatalf("%v: %s", err, out)
	}
}
