package statechart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
)

const style = `text{font:12px ui-sans-serif,system-ui,"DejaVu Sans",sans-serif;fill:#24292f}` +
	`.t{font-weight:600;font-size:13px}.l{font-size:11px;fill:#57606a}` +
	`.s{fill:#fff;stroke:#8c959f;stroke-width:1.2}.c{fill:#f6f8fa}.p{stroke-dasharray:5 4}` +
	`.on{stroke:#1a7f37;stroke-width:2.2}.s.on{fill:#dafbe1}.c.on{fill:#f2fcf4}` +
	`.a{fill:none;stroke:#57606a;stroke-width:1.3}.d{fill:#24292f}.b{fill:#fff;fill-opacity:.88}.e{font-size:11px}`

// render writes the drawing.
func (d *drawing) render(active []string) []byte {
	var b bytes.Buffer
	w, h := d.limit.w+margin, d.limit.h+margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`, px(w), px(h), px(w), px(h))
	fmt.Fprintf(&b, "\n<title>%s</title>\n<style>%s</style>\n", escape(d.m.root.id), style)
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8 10 5 0 9.2z" class="d"/></marker></defs>` + "\n")
	for _, n := range d.m.nodes {
		d.renderState(&b, n, slices.Contains(active, n.id))
	}
	for _, a := range d.arrows {
		renderArrow(&b, a)
	}
	for _, a := range d.arrows {
		renderLabel(&b, a)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (d *drawing) renderState(b *bytes.Buffer, n *node, active bool) {
	box := &d.boxes[n.order]
	class := "s"
	if len(n.states) > 0 {
		class += " c"
	}
	if n.parent != nil && n.parent.kind == parallel {
		class += " p"
	}
	if active {
		class += " on"
	}
	if n.kind == history {
		renderHistory(b, n, box, class)
		return
	}
	fmt.Fprintf(b, `<g id="state-%s">`, escape(n.id))
	if n.description != "" {
		fmt.Fprintf(b, "<title>%s</title>", escape(n.description))
	}
	renderRect(b, box.rect, class)
	if n.kind == final {
		renderRect(b, rect{box.x + 3, box.y + 3, box.w - 6, box.h - 6}, class)
	}
	renderText(b, "t", box.x+12, box.y+18, n.key)
	for i, line := range box.lines {
		renderText(b, "l", box.x+12, box.y+titleHigh+12+float64(i)*lineHigh, line)
	}
	b.WriteString("</g>\n")
	if n.initial != nil {
		d.renderInitial(b, n)
	}
}

func renderRect(b *bytes.Buffer, r rect, class string) {
	fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" rx="7" class="%s"/>`, px(r.x), px(r.y), px(r.w), px(r.h), class)
}

func renderHistory(b *bytes.Buffer, n *node, box *box, class string) {
	c, text := box.center(), "H"
	if n.deep {
		text = "H*"
	}
	fmt.Fprintf(b, `<g id="state-%s"><circle cx="%s" cy="%s" r="13" class="%s"/><text x="%s" y="%s" class="t" text-anchor="middle">%s</text></g>`+"\n",
		escape(n.id), px(c.x), px(c.y), class, px(c.x), px(c.y+4.5), text)
}

// renderInitial draws the dot with the arrow to the initial state.
func (d *drawing) renderInitial(b *bytes.Buffer, n *node) {
	to := &d.boxes[n.initial.order]
	y := to.y + min(to.h/2, 18)
	x := max(to.x-dotWide+6, d.boxes[n.order].x+9)
	fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="5" class="d"/><path d="M%s %s H%s" class="a" marker-end="url(#arrow)"/>`+"\n",
		px(x), px(y), px(x), px(y), px(to.x))
}

func renderArrow(b *bytes.Buffer, a *arrow) {
	p := a.path
	fmt.Fprintf(b, `<path data-from="%s" data-to="%s" d="M%s %s C%s %s %s %s %s %s" class="a" marker-end="url(#arrow)"/>`+"\n",
		escape(a.from.id), escape(a.to.id), px(p[0].x), px(p[0].y), px(p[1].x), px(p[1].y), px(p[2].x), px(p[2].y), px(p[3].x), px(p[3].y))
}

func renderLabel(b *bytes.Buffer, a *arrow) {
	if len(a.labels) == 0 {
		return
	}
	r := a.label
	fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" rx="4" class="b"/>`, px(r.x), px(r.y), px(r.w), px(r.h))
	for i, l := range a.labels {
		renderText(b, "e", r.x+5, r.y+12.5+float64(i)*lineHigh, l)
	}
	b.WriteByte('\n')
}

func renderText(b *bytes.Buffer, class string, x, y float64, text string) {
	fmt.Fprintf(b, `<text x="%s" y="%s" class="%s">%s</text>`, px(x), px(y), class, escape(text))
}

// px formats a number with one decimal digit, so that the output is the same on every platform.
func px(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer never fails
	return b.String()
}
