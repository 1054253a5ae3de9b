package man_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/man"
)

func TestEveryCommandHasAPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, err := man.Write(dir, cli.Commands(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"perdure.1", "perdure-serve.1", "perdure-doctor.1", "perdure-fsm-list.1", "perdure-dev-clock.1"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXIT STATUS"} {
			if !strings.Contains(string(content), section) {
				t.Errorf("%s lacks %s", name, section)
			}
		}
	}
	serve, _ := os.ReadFile(filepath.Join(dir, "perdure-serve.1"))
	for _, part := range []string{`\-\-drain\-timeout duration`, "(default 25s)", ".BR perdure (1)"} {
		if !strings.Contains(string(serve), part) {
			t.Errorf("the page of serve lacks %q", part)
		}
	}
}

func TestPagesAreGoodForMan(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		if os.Getenv("PERDURE_REQUIRE_SERVERS") != "1" {
			t.Skip("there is no groff")
		}
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(man.Page(cli.Commands(), "v1"))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}
