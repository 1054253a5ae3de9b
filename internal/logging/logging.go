// Package logging creates the logger of the program: colored lines for people, JSON for
// programs, and no secrets in either.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

// Options configure a logger. The zero value of every field is its default.
type Options struct {
	// Level is the lowest level that is written. Default: info.
	Level slog.Level
	// People selects a format for people. Default: JSON.
	People bool
	// Color enables colors. Default: false.
	Color bool
	// Secrets are texts that must not be written, wherever they occur. Secrets with a known
	// form are always removed. Default: none.
	Secrets []string
}

// New returns a logger that writes to w.
func New(w io.Writer, o Options) *slog.Logger {
	r := newRedactor(o.Secrets)
	if o.People {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: o.Level, NoColor: !o.Color, TimeFormat: time.TimeOnly, ReplaceAttr: r.replace}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: r.replace}))
}

// minSecret is the shortest text that is removed wherever it occurs. A shorter one would
// also remove ordinary words.
const minSecret = 6

// Mask replaces a secret.
const Mask = "[redacted]"

type redactor struct{ known *strings.Replacer }

func newRedactor(secrets []string) redactor {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, Mask)
		}
	}
	return redactor{strings.NewReplacer(pairs...)}
}

// secretName matches the names of attributes whose values are secret.
var secretName = regexp.MustCompile(`(?i)password|passwd|secret|token|authorization|cookie|api_?key|credential|private_?key`)

// replace removes secrets from an attribute.
func (r redactor) replace(_ []string, a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) {
		return slog.String(a.Key, Mask)
	}
	switch v := a.Value.Resolve(); v.Kind() { //nolint:exhaustive // the other kinds cannot contain text
	case slog.KindString:
		return slog.String(a.Key, r.clean(v.String()))
	case slog.KindAny:
		switch v := v.Any().(type) {
		case error:
			return slog.String(a.Key, r.clean(v.Error()))
		case *slog.Source:
			return a
		case slog.Level:
			return a
		default:
			return slog.String(a.Key, r.clean(fmt.Sprint(v)))
		}
	}
	return a
}

// forms are the secrets with a known form, and their replacements: the password of a URL,
// headers, Perdure's own tokens and signing secrets.
var forms = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(://[^/:@\s]*):[^@/\s]+@`), "$1:" + Mask + "@"},
	{regexp.MustCompile(`(?i)([?&](?:password|sslpassword|token|secret|key)=)[^&\s]+`), "$1" + Mask},
	{regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}`), "$1 " + Mask},
	{regexp.MustCompile(`\b(perdure_(?:sk|at|ss)_)[A-Za-z0-9_-]+`), "$1" + Mask},
	{regexp.MustCompile(`\b(whsec_)[A-Za-z0-9+/=_-]+`), "$1" + Mask},
	{regexp.MustCompile(`\b(re_|sk_live_|sk_test_)[A-Za-z0-9_]{8,}`), "$1" + Mask},
}

func (r redactor) clean(text string) string {
	text = r.known.Replace(text)
	for _, f := range forms {
		text = f.re.ReplaceAllString(text, f.to)
	}
	return text
}
