package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/telemetry"
)

// generated are the pages that are made from code.
var generated = map[string]func() string{
	"docs/reference/metrics.md": telemetry.Reference,
	"docs/operations/doctor.md": doctor.Reference,
}

func TestGeneratedPagesAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	for page, text := range generated {
		file := filepath.Join(root, page)
		if *update {
			if err := os.WriteFile(file, []byte(text()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if content, err := os.ReadFile(file); err != nil || string(content) != text() {
			t.Errorf("%s differs from the code; run go test ./docs -update", page)
		}
	}
}
