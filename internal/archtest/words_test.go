package archtest

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// phrase is a word or phrase that texts do not use, and what they use instead. A space
// matches any white space, also the end of a line of a comment.
type phrase struct{ pattern, instead string }

// phrases are not used in comments, messages, documentation, the dashboard and scripts.
// docs/glossary.md has the terms that are used.
var phrases = []phrase{
	{`nobody|no one`, "no process, no caller, none"},
	{`somebody|someone`, "another process, an operator, a caller"},
	{`everybody`, "all callers"},
	{`anybody`, "any caller"},
	{`whoever|whomever|whosoever|whatsoever`, "the caller, the next process"},
	{`for ever`, "indefinitely"},
	{`c[ao]mes? of`, "result"},
	{`bec[ao]mes? of`, "outcome, happens to"},
	{`t(?:old|ells?) of`, "notified of, reports"},
	{`(?:is|are|was|were|be|been) told`, "receives, is called with"},
	{`sees? to|saw to|seen to`, "handles, ensures"},
	{`mend(?:s|ed|ing)?`, "fix"},
	{`meanwhile`, "concurrently"},
	{`beside`, "in addition to, next to, except"},
	{`signs? of life`, "heartbeat"},
	{`now and then`, "every N seconds"},
	{`a moment`, "a time with a unit"},
	{`at no cost`, "without counting an attempt"},
	{`ever (?:longer|later)|later each time`, "with backoff"},
	{`again and again`, "repeatedly"},
	{`whatever crashes`, "even if a process crashes"},
	{`for good`, "permanently"},
	{`but for`, "except"},
	{`nothing but`, "only"},
	{`shall`, "must, will"},
	{`on (?:its|their) way`, "in flight, queued"},
	{`no more`, "no longer; allowed: no more … than"},
	{`los[et] (?:its|their) process(?:es)?`, "crashed"},
	{`culprits?`, "the failed unit, the failed item"},
	{`innocent`, "healthy"},
	{`blam(?:e|es|ed|ing)`, "attribute"},
	{`acquit\w*`, "clear"},
	{`obituar\w*`, "notification of a crash"},
	{`slept over`, "missed while no process ran"},
	{`stands? still`, "is suspended"},
	{`first to be due`, "by due time"},
	{`dear to`, "expensive for"},
	{`all is well`, "say what is true"},
	{`are possible`, "must be between A and B, must be A, B or C"},
	{`is how (?:many|much|long|often|far)`, "is the number, the limit, the interval"},
	{`says (?:whether|that)`, "reports whether, is true if"},
	{`learns? (?:whether|that)`, "is set if"},
	{`is what`, "is the NOUN"},
	{`the like`, "name them"},
	{`go(?:es|ne|ing)? on|went on`, "continue, resume"},
	{`giv(?:e|es|en|ing) up|gave up`, "cancel, abandon, stop"},
	{`left behind`, "abandoned"},
	{`is no error`, "is not an error"},
	{`outside of`, "outside"},
	{`half a minute`, "30 s"},
	{`earlier system`, "actor-kit"},
	{`imports:`, "internal/archtest has the import rules"},
	{`step machines?`, "state machine"},
	{`unless told otherwise`, "by default"},
	{`failed to`, "verb and object: cause"},
	{`e-mail\w*`, "email"},
	{`(?:colour|neighbour|behaviour|honour|favour|licence|serialis|recognis|organis|initialis|normalis)\w*|learnt`, "American spelling"},
}

// allowed are uses of phrases that are correct. A use is allowed in the files that match
// file, if the text around it contains near.
var allowed = []struct{ file, near, why string }{
	{"docs/guide/unit-of-work.md", `"nobody"`, "the id of a row in an example"},
	{"internal/test/testdb/owner_unix.go", `"nobody"`, "the user of the operating system"},
	{"CODE_OF_CONDUCT.md", "", "the text of the Contributor Covenant"},
	{"*.sql", "no more attempts than", "a comparison"},
	{"*", "no more than", "a comparison"},
	{"*", "in Go on", "the language"},
	{"*", "no error handler", "none is set"},
	{"engine.go", "gone on Close", "it is removed"},
	{"README.md", "nothing but Go", "the requirement of the first program"},
}

// notTexts are files and directories without texts of this project.
var notTexts = []string{
	"*_test.go", "*/testdata", "*/vendor", ".git", "bin", "LICENSE*", "*.sum", "*.svg",
	"internal/store/migration", // merged migrations never change
}

func TestTextsUsePlainWords(t *testing.T) {
	t.Parallel()
	eachText(t, func(file, text string, line int) {
		for _, f := range lintText(file, text) {
			t.Errorf("%s:%d: %q: write %s", file, line+f.line, f.text, f.instead)
		}
	})
}

func TestUnusedWordsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"A claim that nobody has.":              1,
		"It is told\n// of the outcome.":        1,
		"The step goes\n-- on.":                 1,
		"Nobody knows what becomes of it":       2,
		"It reads no more than its limit.":      0,
		"It reads no more.":                     1,
		"noBody returns no body.":               0,
		"The categories of the amendment, seen": 0,
	} {
		if got := lintText("x.go", text); len(got) != want {
			t.Errorf("%q: found %+v, want %d", text, got, want)
		}
	}
}

type finding struct {
	line          int
	text, instead string
}

var (
	anyPhrase = compilePhrases()
	camelCase = regexp.MustCompile(`[a-z][A-Z]`)
	// lineStart is a line feed with the indent and the comment mark of the next line.
	lineStart = regexp.MustCompile(`\n[ \t]*(?://+|--|#+|\*+|>)?[ \t]*`)
)

// compilePhrases returns one expression with a group for each phrase.
func compilePhrases() *regexp.Regexp {
	var all []string
	for _, p := range phrases {
		all = append(all, "("+strings.ReplaceAll(p.pattern, " ", `\s+`)+")")
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`)
}

// lintText returns the phrases in a text, with the number of lines before each.
func lintText(file, text string) []finding {
	text = lineStart.ReplaceAllString(text, "\n")
	var found []finding
	for _, m := range anyPhrase.FindAllStringSubmatchIndex(lower(text), -1) {
		near := text[max(0, m[0]-40):min(len(text), m[1]+40)]
		if isAllowed(file, near) || camelCase.MatchString(text[m[0]:m[1]]) {
			continue
		}
		for i, p := range phrases {
			if m[2*i+2] >= 0 {
				found = append(found, finding{strings.Count(text[:m[0]], "\n"), text[m[0]:m[1]], p.instead})
			}
		}
	}
	return found
}

// lower returns a text with ASCII letters in lower case, so that positions stay the same.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

func isAllowed(file, near string) bool {
	for _, a := range allowed {
		if fits(a.file, file) && strings.Contains(near, a.near) {
			return true
		}
	}
	return false
}

// fits reports whether a file is named by a pattern: by its path, or by its name.
func fits(pattern, file string) bool {
	if rest, ok := strings.CutPrefix(pattern, "*/"); ok {
		return filepath.Base(file) == rest
	}
	for _, name := range []string{file, filepath.Base(file)} {
		if ok, err := filepath.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// eachText calls fn for each text of the repository: the comments and strings of Go files,
// and all other text files as a whole. line is the number of its first line.
func eachText(t *testing.T, fn func(file, text string, line int)) {
	t.Helper()
	eachFile(t, func(file string, content []byte) {
		switch {
		case filepath.Ext(file) == ".go":
			eachGoText(content, func(text string, line int) { fn(file, text, line) })
		case utf8.Valid(content) && !bytes.ContainsRune(content, 0):
			fn(file, string(content), 1)
		}
	})
}

// eachFile calls fn for each file with texts, by its path in the repository.
func eachFile(t *testing.T, fn func(file string, content []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	n := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		file := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		for _, pattern := range notTexts {
			if fits(pattern, file) {
				if entry.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil {
			fn(file, content)
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 500 {
		t.Fatalf("only %d files were found", n)
	}
}

// eachGoText calls fn for each string of a Go file, and for each run of comments.
func eachGoText(content []byte, fn func(text string, line int)) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	var comment strings.Builder
	first, last := 0, 0
	flush := func() {
		if comment.Len() > 0 {
			fn(comment.String(), first)
		}
		comment.Reset()
	}
	for {
		pos, tok, text := s.Scan()
		line := set.Position(pos).Line
		switch tok {
		case token.EOF:
			flush()
			return
		case token.COMMENT:
			if line != last+1 || comment.Len() == 0 {
				flush()
				first = line
			} else {
				comment.WriteByte('\n')
			}
			comment.WriteString(text)
			last = line + strings.Count(text, "\n")
		case token.STRING:
			fn(text, line)
		}
	}
}
