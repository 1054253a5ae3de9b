package torture_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/test/torture"
)

func TestAJournalSurvivesALineThatWasCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first, err := torture.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{first.Intend("a"), first.Acknowledge("a"), first.Intend("b"), first.Intend("c"), first.Refuse("c"), first.Close()} {
		if step != nil {
			t.Fatal(step)
		}
	}
	cut(t, path, "ack b")
	second, err := torture.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Intend("d"); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := torture.ReadJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]torture.Outcome{"a": torture.Acknowledged, "b": torture.Unknown, "c": torture.Failed, "d": torture.Unknown}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAJournalThatDoesNotExistKnowsNothing(t *testing.T) {
	t.Parallel()
	got, err := torture.ReadJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// cut adds a line as a crash leaves it, without its end.
func cut(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
