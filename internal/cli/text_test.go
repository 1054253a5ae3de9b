package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestHelpTextsHaveOneForm(t *testing.T) {
	t.Parallel()
	walk(reference(), func(cmd *cobra.Command) {
		if n := len([]rune(cmd.Short)); n > 60 || strings.HasSuffix(cmd.Short, ".") || !unicode.IsUpper([]rune(cmd.Short)[0]) {
			t.Errorf("%s: the short text must start upper-case and have at most 60 characters and no period, got %q (%d)", cmd.CommandPath(), cmd.Short, n)
		}
		if cmd.Long != "" && strings.HasPrefix(cmd.Long, cmd.Short+".") {
			t.Errorf("%s: the long text repeats the short text", cmd.CommandPath())
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { checkUsage(t, cmd, f) })
	})
}

// checkUsage checks the form of the text of a flag.
func checkUsage(t *testing.T, cmd *cobra.Command, f *pflag.Flag) {
	t.Helper()
	word, _, _ := strings.Cut(f.Usage, " ")
	acronym := word == strings.ToUpper(word)
	switch {
	case unicode.IsUpper([]rune(f.Usage)[0]) && !acronym && !strings.HasPrefix(word, "SQL"), strings.HasSuffix(f.Usage, "."):
		t.Errorf("%s --%s: the text must start lower-case and have no period, got %q", cmd.CommandPath(), f.Name, f.Usage)
	case slices.Contains([]string{"the", "a", "an", "how", "what", "when", "why", "who"}, word):
		t.Errorf("%s --%s: the text must be a noun phrase without an article, got %q", cmd.CommandPath(), f.Name, f.Usage)
	}
}

func TestEveryCommandHasAnExampleThatItAccepts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	walk(reference(), func(cmd *cobra.Command) {
		path := pathOf(cmd)
		known[path] = true
		if cmd.Annotations[onlyHolds] != "" || cmd.RunE == nil && cmd.Run == nil || path == "" {
			return
		}
		example := strings.TrimSpace(cmd.Example)
		if !strings.HasPrefix(example, cmd.CommandPath()) {
			t.Errorf("%s: the example must call the command, got %q", cmd.CommandPath(), example)
			return
		}
		args := words(strings.TrimPrefix(example, cmd.CommandPath()))
		if err := cmd.ParseFlags(args); err != nil {
			t.Errorf("%s: %v", example, err)
			return
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", example, err)
		}
	})
	for path := range maps.Keys(examples) {
		if !known[path] {
			t.Errorf("there is an example of %q, which is not a command", path)
		}
	}
}

// words splits a command line as a shell does.
func words(line string) (all []string) {
	var word strings.Builder
	var quote rune
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote, quote == 0 && (r == '"' || r == '\''):
			if quote == 0 {
				quote = r
			} else {
				quote = 0
			}
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				all = append(all, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return all
}
