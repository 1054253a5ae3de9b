package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const envPrefix = "PERDURE_"

// unbound are the flags that the environment cannot set. They are help, and the consent to
// an irreversible action, which must be given each time.
var unbound = []string{"help", "yes"}

// variables returns the names of the variables that set a flag, in order of precedence.
func variables(flag string) []string {
	switch {
	case slices.Contains(unbound, flag):
		return nil
	case flag == "dsn":
		return []string{envPrefix + "DATABASE_URL", "DATABASE_URL"}
	}
	return []string{envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// bind sets the flags that the command line did not set from the environment.
func (a *app) bind(flags *pflag.FlagSet) error {
	a.fromEnv = map[string]bool{}
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || failed != nil {
			return
		}
		name, value, err := a.lookup(variables(f.Name))
		if err == nil && name != "" {
			err = flags.Set(f.Name, value)
			a.fromEnv[f.Name] = true
		}
		if err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
		}
	})
	return failed
}

// lookup returns the first variable that is set, directly or as the name of a file, and its
// value.
func (a *app) lookup(names []string) (name, value string, err error) {
	for _, name := range names {
		if value := a.env[name]; value != "" {
			return name, value, nil
		}
		if file := a.env[name+"_FILE"]; file != "" {
			content, err := os.ReadFile(file)
			return name + "_FILE", strings.TrimSpace(string(content)), err
		}
	}
	return "", "", nil
}

// warnUnknown warns about variables with the prefix of this program that set nothing: they
// are likely misspelled. It ignores the variables of the tests.
func (a *app) warnUnknown(root *cobra.Command) {
	known := a.variables(root)
	for _, name := range slices.Sorted(maps.Keys(a.env)) {
		if !strings.HasPrefix(name, envPrefix) || known[name] || isForTests(name) {
			continue
		}
		fmt.Fprintf(a.err, "perdure: warning: %s is set but unknown%s\n", name, hint(name, known))
	}
}

// variables returns the variables that set a flag of the program, or a secret.
func (a *app) variables(root *cobra.Command) map[string]bool {
	known := map[string]bool{}
	visit(root, func(f *pflag.Flag) {
		for _, name := range variables(f.Name) {
			known[name], known[name+"_FILE"] = true, true
		}
	})
	for _, name := range secretVariables {
		known[name], known[name+"_FILE"] = true, true
	}
	return known
}

func isForTests(name string) bool {
	return strings.HasPrefix(name, envPrefix+"TEST_") || name == envPrefix+"REQUIRE_SERVERS" || name == envPrefix+"FAILPOINT"
}

// visit calls fn for the flags of cmd and of all commands below it.
func visit(cmd *cobra.Command, fn func(*pflag.Flag)) {
	cmd.LocalFlags().VisitAll(fn)
	for _, c := range cmd.Commands() {
		visit(c, fn)
	}
}

// hint returns the known variable that is closest to a misspelled one.
func hint(name string, known map[string]bool) string {
	best, least := "", 3 // more differences make it another word
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance returns the number of characters that must be changed, added or removed to turn
// one string into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Variables returns all variables of the environment that set something.
func Variables() map[string]bool {
	a := &app{env: map[string]string{}}
	return a.variables(a.root())
}
