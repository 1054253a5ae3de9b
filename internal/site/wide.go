package site

import (
	"fmt"
	"html"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// Code and tables can be wider than the window. They scroll separately, also by keyboard,
// which needs the tabindex.

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	class := ""
	if block, ok := n.(*ast.FencedCodeBlock); ok {
		if language := block.Language(source); len(language) > 0 {
			class = fmt.Sprintf(` class="language-%s"`, html.EscapeString(string(language)))
		}
	}
	code := html.EscapeString(string(n.Lines().Value(source)))
	_, err := fmt.Fprintf(w, "<pre tabindex=\"0\"><code%s>%s</code></pre>\n", class, code)
	return ast.WalkSkipChildren, err
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	text := "</tbody>\n</table></div>\n"
	if entering {
		text = "<div class=\"wide\" tabindex=\"0\"><table>\n"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

// renderTableHeader leaves out an empty header.
func renderTableHeader(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if silent(n) {
		if entering {
			_, err := w.WriteString("<tbody>\n")
			return ast.WalkSkipChildren, err
		}
		return ast.WalkContinue, nil
	}
	text := "</tr>\n</thead>\n<tbody>\n"
	if entering {
		text = "<thead>\n<tr>"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

func silent(header ast.Node) bool {
	for cell := header.FirstChild(); cell != nil; cell = cell.NextSibling() {
		if cell.HasChildren() {
			return false
		}
	}
	return true
}

func renderTableRow(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	text := "</tr>\n"
	if entering {
		text = "<tr>"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

// renderTableCell renders an empty header cell as an ordinary cell.
func renderTableCell(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	cell := n.(*extast.TableCell)
	tag := "td"
	if n.Parent().Kind() == extast.KindTableHeader && n.HasChildren() {
		tag = "th"
	}
	if !entering {
		_, err := fmt.Fprintf(w, "</%s>", tag)
		return ast.WalkContinue, err
	}
	align := ""
	if cell.Alignment != extast.AlignNone {
		align = fmt.Sprintf(` align="%s"`, cell.Alignment)
	}
	_, err := fmt.Fprintf(w, "<%s%s>", tag, align)
	return ast.WalkContinue, err
}
