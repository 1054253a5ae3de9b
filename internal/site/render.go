package site

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// markdown is the dialect of the pages: the dialect of the forges, with markup that needs
// no inline style, and without raw HTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.Strikethrough, extension.Linkify,
		extension.Table,
	),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
)

// render renders the body of a page, with links to pages of the site.
func (s *site) render(p *page) error {
	err := ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(s.resolve(p, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(s.resolve(p, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, p.tree); err != nil {
		return err
	}
	p.body = template.HTML(b.String()) //nolint:gosec // goldmark escapes text, and nodes escapes HTML
	return nil
}

// nodes renders the nodes that differ from goldmark's default.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindHTMLBlock, renderHTMLBlock)
	r.Register(ast.KindRawHTML, renderRawHTML)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(extast.KindTable, renderTable)
	r.Register(extast.KindTableHeader, renderTableHeader)
	r.Register(extast.KindTableRow, renderTableRow)
	r.Register(extast.KindTableCell, renderTableCell)
}

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	if entering {
		_, err := fmt.Fprintf(w, `<h%d id="%s">`, h.Level, html.EscapeString(id(h)))
		return ast.WalkContinue, err
	}
	anchor := ""
	if h.Level > 1 {
		anchor = fmt.Sprintf(` <a class="anchor" href="#%s" aria-label="Link to this section">#</a>`, html.EscapeString(id(h)))
	}
	_, err := fmt.Fprintf(w, "%s</h%d>\n", anchor, h.Level)
	return ast.WalkContinue, err
}

func id(h *ast.Heading) string {
	value, _ := h.AttributeString("id")
	text, _ := value.([]byte)
	return string(text)
}

// renderHTMLBlock shows HTML as text; comments, which mark examples, are left out.
func renderHTMLBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.HTMLBlock)
	text := string(block.Lines().Value(source))
	if block.HasClosure() {
		text += string(block.ClosureLine.Value(source))
	}
	return showHTML(w, text, "<p>", "</p>\n")
}

func renderRawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	return showHTML(w, string(n.(*ast.RawHTML).Segments.Value(source)), "", "")
}

func showHTML(w util.BufWriter, text, before, after string) (ast.WalkStatus, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<!--") && strings.Index(text, "-->") == len(text)-len("-->") {
		return ast.WalkSkipChildren, nil
	}
	_, err := w.WriteString(before + html.EscapeString(text) + after)
	return ast.WalkSkipChildren, err
}
