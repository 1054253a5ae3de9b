package sqldb

import "strings"

// Control is a statement that starts, ends or divides a transaction.
type Control int

// The kinds of statements.
const (
	// NoControl is any other statement.
	NoControl Control = iota
	// Ends is BEGIN, COMMIT, ROLLBACK and similar statements. A list of statements with a savepoint
	// among them counts as Ends too: its effect on the transaction cannot be followed.
	Ends
	// Savepoint, Release and RollbackTo have the name of a savepoint.
	Savepoint
	Release
	RollbackTo
)

// ControlOf returns the kind of a statement and the name of its savepoint, in lower case.
func ControlOf(query string) (kind Control, name string) {
	at := skipSpace(query, 0)
	if word, _ := wordAt(query, at); word == "create" { // a trigger or a function has BEGIN and END inside
		return NoControl, ""
	}
	kind, name = controlAt(query, at)
	for at = nextStatement(query, at); at < len(query); at = nextStatement(query, at) {
		other, _ := controlAt(query, at)
		if other != NoControl || kind != NoControl {
			return Ends, ""
		}
	}
	return kind, name
}

// controlAt returns the kind of the statement at a position.
func controlAt(query string, at int) (kind Control, name string) {
	words := [5]string{} // rollback work to savepoint name
	for i := range words {
		words[i], at = wordAt(query, at)
		at = skipSpace(query, at)
	}
	switch words[0] {
	case "begin", "commit", "end", "abort", "xa":
		return Ends, ""
	case "start", "prepare":
		if words[1] == "transaction" {
			return Ends, ""
		}
	case "savepoint":
		return Savepoint, words[1]
	case "release":
		if words[1] == "savepoint" {
			return Release, words[2]
		}
		return Release, words[1]
	case "rollback":
		return rollbackOf(words[1:])
	}
	return NoControl, ""
}

// rollbackOf returns the kind of ROLLBACK [WORK | TRANSACTION] [TO [SAVEPOINT] name].
func rollbackOf(words []string) (kind Control, name string) {
	if words[0] == "work" || words[0] == "transaction" {
		words = words[1:]
	}
	switch {
	case words[0] != "to":
		return Ends, ""
	case words[1] == "savepoint":
		return RollbackTo, words[2]
	}
	return RollbackTo, words[1]
}

// wordAt returns the word or the quoted name at a position, in lower case and without
// quotes, and where it ends.
func wordAt(query string, at int) (word string, end int) {
	if at < len(query) && (query[at] == '"' || query[at] == '`') {
		end = closing(query, at+1, query[at:at+1])
		return strings.ToLower(strings.Trim(query[at:end], query[at:at+1])), end
	}
	end = at
	for end < len(query) && isWord(query[end]) {
		end++
	}
	return strings.ToLower(query[at:end]), end
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// skipSpace returns the first position that is not white space or in a comment.
func skipSpace(query string, at int) int {
	for at < len(query) {
		switch {
		case query[at] == ' ' || query[at] == '\t' || query[at] == '\n' || query[at] == '\r' || query[at] == '\f':
			at++
		case strings.HasPrefix(query[at:], "--"), strings.HasPrefix(query[at:], "/*"):
			at = skipQuoted(query, at)
		case query[at] == '#':
			at = closing(query, at+1, "\n")
		default:
			return at
		}
	}
	return at
}

// nextStatement returns the start of the statement after the next semicolon, or the end of
// the text.
func nextStatement(query string, at int) int {
	for at < len(query) {
		switch end := skipText(query, at); {
		case end > at:
			at = end
		case query[at] == ';':
			return skipSpace(query, at+1)
		default:
			at++
		}
	}
	return at
}

// skipText returns the end of the quoted text or comment at a position, in any dialect, or
// the position itself.
func skipText(query string, at int) int {
	switch query[at] {
	case '`':
		return closing(query, at+1, "`")
	case '$': // PostgreSQL's $tag$ … $tag$
		tag := strings.IndexByte(query[at+1:], '$')
		if tag < 0 || strings.ContainsFunc(query[at+1:at+1+tag], func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
			return at
		}
		mark := query[at : at+tag+2]
		return closing(query, at+len(mark), mark)
	}
	return skipQuoted(query, at)
}
