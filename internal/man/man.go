// Package man generates the manual pages of the program from its commands. It is not part
// of the program: "go run ./internal/man/gen" writes the pages.
package man

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes a page of section 1 for each command into a directory, and returns
// the names of the files.
func Write(dir string, root *cobra.Command, version string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory of manual pages: %w", err)
	}
	var names []string
	for _, cmd := range commands(root) {
		name := pageName(cmd) + ".1"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(Page(cmd, version)), 0o644); err != nil {
			return nil, fmt.Errorf("write manual page: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// commands returns a command and all visible commands below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			all = append(all, commands(c)...)
		}
	}
	return all
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Page returns the page of a command.
func Page(cmd *cobra.Command, version string) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Perdure\"\n", strings.ToUpper(name), "perdure "+version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", text(name), text(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", text(cmd.UseLine()))
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + paragraphs(description))
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + paragraphs(cmd.Example))
	}
	flags(&b, "OPTIONS", cmd.NonInheritedFlags())
	flags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	b.WriteString(exits)
	related(&b, cmd)
	return b.String()
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(b, ".TP\n.B \\-\\-%s%s\n%s", text(f.Name), text(value), text(usage))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			b.WriteString(text(" (default " + f.DefValue + ")"))
		}
		b.WriteString("\n")
	})
}

// exits are the exit codes of all commands.
const exits = `.SH EXIT STATUS
.TP
.B 0
success
.TP
.B 1
failure
.TP
.B 2
wrong usage
.TP
.B 3
not found
.TP
.B 4
conflict: not migrated, entries removed, finished, or changed concurrently
.TP
.B 5
not authorized
.TP
.B 7
database or server unreachable
.TP
.B 124
timed out
.TP
.B 130, 143
interrupted, terminated
`

// related writes the names of the parent command and the subcommands.
func related(b *strings.Builder, cmd *cobra.Command) {
	var all []string
	if cmd.HasParent() {
		all = append(all, pageName(cmd.Parent()))
	}
	for _, c := range commands(cmd)[1:] {
		if c.Parent() == cmd {
			all = append(all, pageName(c))
		}
	}
	if len(all) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range all {
		comma := ","
		if i == len(all)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", text(name), comma)
	}
}

// paragraphs converts text with empty lines between paragraphs to roff. Indented lines stay
// unchanged.
func paragraphs(body string) string {
	var b strings.Builder
	for _, p := range strings.Split(body, "\n\n") {
		b.WriteString(".PP\n")
		for _, line := range strings.Split(p, "\n") {
			if strings.HasPrefix(line, "  ") {
				b.WriteString(".br\n")
			}
			b.WriteString(text(line) + "\n")
		}
	}
	return b.String()
}

// text escapes roff's special characters.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	var b strings.Builder
	for _, r := range s {
		if r < 128 {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\[u%04X]`, r)
	}
	return b.String()
}
