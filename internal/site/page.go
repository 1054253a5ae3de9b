package site

import (
	"html/template"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// page is one page of the documentation.
type page struct {
	file   string // guide/fsm.md
	url    string // guide/fsm
	Title  string
	source []byte
	tree   ast.Node
	// Headings are the headings of the second and third level, for the table of contents.
	Headings []heading
	body     template.HTML
}

// heading is a place in a page that can be linked to.
type heading struct {
	Level int
	ID    string
	Text  string
}

// parse parses a page and gives its headings the same ids as GitHub and GitLab.
func parse(file string, source []byte) *page {
	p := &page{file: file, url: address(file), source: source, Title: file}
	p.tree = markdown.Parser().Parse(text.NewReader(source))
	seen := map[string]int{}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		words := plain(h, source)
		id := slug(words, seen)
		h.SetAttributeString("id", []byte(id))
		switch {
		case h.Level == 1:
			p.Title = words
		case h.Level <= 3:
			p.Headings = append(p.Headings, heading{Level: h.Level, ID: id, Text: words})
		}
	}
	return p
}

// slug returns the id of a heading by the rules of GitHub and GitLab. Letters, digits,
// hyphens and underscores stay, spaces become hyphens, and a repeated heading gets a
// number.
func slug(words string, seen map[string]int) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, words)
	n := seen[id]
	seen[id]++
	if n > 0 {
		return id + "-" + strconv.Itoa(n)
	}
	return id
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if c.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.AutoLink:
			b.Write(c.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(c.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
