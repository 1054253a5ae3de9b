package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unusedNames are words that identifiers do not contain, and what they contain instead.
// Plurals and other forms are listed separately.
var unusedNames = map[string]string{
	"see": "find, record, show", "told": "response, recorded", "tell": "notify, read, send", "telling": "notifying",
	"acquit": "clear", "obituary": "crash notification", "obituaries": "crash notifications", "wall": "now, milliseconds",
	"culprit": "failed", "culprits": "failed", "blame": "attribute", "innocent": "healthy", "mend": "fix",
	"beside": "between, next to", "meanwhile": "what it does", "judge": "check, classify", "judged": "checked",
	"settle": "commit, finish", "settled": "committed, finished", "settling": "committing", "settlement": "outcome",
	"hungry": "more due", "surrender": "fail", "thorough": "full", "revive": "reopen, restart", "revived": "reopened, restarted", "reviving": "reopening",
	"news": "wakeups", "bury": "dead letter", "buried": "dead letter", "doom": "end", "doomed": "unfinished", "disband": "split",
	"hears": "has remote", "heard": "received", "neighbour": "adjacent", "neighbours": "adjacent", "serialise": "encode",
	"breath": "delay", "hasten": "make due", "nobody": "none", "somebody": "other", "whoever": "caller",
}

// allowedNames are identifiers that contain such a word with its usual meaning.
var allowedNames = []struct{ file, name, why string }{
	{"internal/cron/calendar.go", "*", "wall time is the term for local times"},
	{"examples/payment/main.go", "settle", "payments are settled"},
	{"internal/cli/*.go", "noBody", "no body"},
}

func TestIdentifiersUsePlainWords(t *testing.T) {
	t.Parallel()
	eachFile(t, func(file string, content []byte) {
		if filepath.Ext(file) != ".go" || strings.HasPrefix(file, "internal/test/") {
			return // the tools for tests follow their tests
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, id := range declared(f) {
			if word := unusedWordOf(id.Name); word != "" && !isAllowedName(file, id.Name) {
				t.Errorf("%s: %s contains %q: use %s", set.Position(id.Pos()), id.Name, word, unusedNames[word])
			}
		}
	})
}

func TestUnusedWordsOfIdentifiersAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"TellTime": "tell", "settleOnce": "settle", "SeeLeases": "see", "seen": "", "HTTPNews": "news", "intellect": "", "newsletter": "", "lastSettled": "settled",
	} {
		if got := unusedWordOf(name); got != want {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
}

// declared returns the identifiers that a file declares.
func declared(f *ast.File) []*ast.Ident {
	var all []*ast.Ident
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok {
			all = append(all, id)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			all = append(all, n.Names...)
		case *ast.Field:
			all = append(all, n.Names...)
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		}
		return true
	})
	return all
}

var wordOfName = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// unusedWordOf returns the first word of a name that is not used, or "".
func unusedWordOf(name string) string {
	for _, word := range wordOfName.FindAllString(name, -1) {
		if small := strings.IndexFunc(word, func(r rune) bool { return r >= 'a' }); small > 1 {
			word = word[small-1:] // HTTPNews
		}
		if word = strings.ToLower(word); unusedNames[word] != "" {
			return word
		}
	}
	return ""
}

func isAllowedName(file, name string) bool {
	for _, a := range allowedNames {
		if fits(a.file, file) && (a.name == "*" || a.name == name) {
			return true
		}
	}
	return false
}
