package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/mattn/go-isatty"
)

// show prints a result: v as JSON with --json, otherwise what text writes.
func (a *app) show(v any, text func(io.Writer)) error {
	if !a.json {
		text(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// line prints one JSON value of a stream.
func (a *app) line(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes rows in columns; the first row is the heading.
func table(w io.Writer, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	_ = tw.Flush()
}

// progress shows the current activity if the output is a terminal. The next call replaces
// it; "" removes it.
func (a *app) progress(text string) {
	if isTerminal(a.err) {
		fmt.Fprint(a.err, "\r\x1b[K"+text)
	}
}

func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd())
}

// The colors, as terminals number them.
const (
	red    = 31
	green  = 32
	yellow = 33
	blue   = 34
	grey   = 90
)

// color returns the text in a color if the output shows colors.
func (a *app) color(color int, text string) string {
	if !a.colorful() {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, text)
}

func (a *app) colorful() bool {
	if a.noColor || a.env["NO_COLOR"] != "" {
		return false
	}
	if force := a.env["CLICOLOR_FORCE"]; force != "" && force != "0" {
		return true
	}
	return a.env["TERM"] != "dumb" && isTerminal(a.out)
}

// plain returns text from the database. It quotes text with unprintable characters, which
// could control the terminal.
func plain(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// instant formats a time.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// count returns a number with its noun: "1 entry", "2 entries".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands returns a number with its digits in groups: 12,345.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
