package uitest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// attacks call pwned if any part of them is run.
var attacks = []string{
	`<script>pwned()</script>`, `<img src=x onerror=pwned()>`, `<svg onload=pwned()>`, `<svg><script>pwned()</script></svg>`, `"><script>pwned()</script>`,
	`'><img src=x onerror=pwned()>`, `</title><script>pwned()</script>`, `</textarea><script>pwned()</script>`, `</style><script>pwned()</script>`, `<body onload=pwned()>`,
	`<iframe src="javascript:parent.pwned()"></iframe>`, `<iframe srcdoc="<script>parent.pwned()</script>"></iframe>`, `<a href="javascript:pwned()">x</a>`, `javascript:pwned()`, `JaVaScRiPt:pwned()`,
	"java\tscript:pwned()", `data:text/html,<script>pwned()</script>`, `" onmouseover="pwned()" x="`, `' onfocus='pwned()' autofocus='`, `x" autofocus onfocus=pwned() y="`,
	`<details open ontoggle=pwned()>`, `<input autofocus onfocus=pwned()>`, `<video><source onerror=pwned()></video>`, `<marquee onstart=pwned()>`, `<math><mi xlink:href="javascript:pwned()">x</mi></math>`,
	`<object data="javascript:pwned()"></object>`, `<embed src="javascript:pwned()">`, `<form action="javascript:pwned()"><button autofocus>x</button></form>`, `<link rel=stylesheet href="javascript:pwned()">`, `<style>@import "javascript:pwned()";</style>`,
	`<base href="javascript:pwned()//">`, `<meta http-equiv=refresh content="0;url=javascript:pwned()">`, `<template><script>pwned()</script></template>`, `<!--><script>pwned()</script>-->`, `<![CDATA[<script>pwned()</script>]]>`,
	`&lt;script&gt;pwned()&lt;/script&gt;`, `&#60;img src=x onerror=pwned()&#62;`, `${pwned()}{{pwned()}}{{constructor.constructor("pwned()")()}}`, `__proto__`, "\u2028<script>pwned()</script>\u202e",
}

var givenByUsers = map[string]bool{"payload": true, "state": true, "context": true, "input": true, "values": true}

// poison puts an attack into every text of a value, and into the names of what
// users have put in.
func poison(value any, attack string) any {
	switch v := value.(type) {
	case string:
		return attack
	case object:
		o := object{}
		for name, inner := range v {
			o[name] = poison(inner, attack)
			if given, ok := o[name].(object); ok && givenByUsers[name] {
				given[attack] = attack
			}
			if name == "role" { // so that all actions are shown
				o[name] = inner
			}
		}
		return o
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = poison(v[i], attack)
		}
		return all
	case []string:
		all := make([]string, len(v))
		for i := range v {
			all[i] = attack
		}
		return all
	default:
		return value
	}
}

// poisoned has an attack in everything that has a page of its own, and all of them
// in lists, one in each row.
func poisoned(attack string) map[string]any {
	data := sample()
	for path, value := range data {
		page, ok := value.(object)["data"].([]any)
		if !ok || strings.Contains(path, "*") || len(page) == 0 {
			data[path] = poison(value, attack)
			continue
		}
		rows := make([]any, len(attacks))
		for i, a := range attacks {
			rows[i] = poison(page[i%len(page)], a)
		}
		data[path] = list(rows...)
	}
	return data
}

// details are the pages that show one thing.
var details = []string{"", "instances/x", "actors/t/x", "hooks/x", "tasks/x", "alarms/x", "schedules/x", "definitions/x", "statecharts/x", "settings"}

func TestAttacksAreShownAndNotRun(t *testing.T) {
	t.Parallel()
	if len(attacks) < 40 {
		t.Fatalf("there are only %d attacks", len(attacks))
	}
	f := newFake(t, poisoned(attacks[0]))
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	p.run(`window.ran = []; window.pwned = () => ran.push(location.href); window.alert = window.pwned;`)
	for _, page := range pages {
		p.visit(f, page)
		p.unharmed(page)
	}
	for group := range slices.Chunk(attacks, 5) {
		attack := strings.Join(group, " ")
		f.mu.Lock()
		f.data = poisoned(attack)
		f.mu.Unlock()
		for _, page := range details {
			p.visit(f, page)
			p.unharmed(page + " with " + attack)
			if page != "" && page != "settings" && !eval[bool](p, fmt.Sprintf(`document.querySelector("main").textContent.includes(%s)`, quoted(attack))) {
				t.Errorf("/%s does not show %s", page, attack)
			}
		}
	}
}

// quoted writes a text as JavaScript has it.
func quoted(s string) string { return strings.ReplaceAll(fmt.Sprintf("%+q", s), "$", `\x24`) }

// unharmed checks that nothing was run, and nothing is there that could be.
func (p *tab) unharmed(what string) {
	p.t.Helper()
	const harm = `[...ran, ...[...document.querySelectorAll("*")].flatMap((e) => [...e.attributes].filter((a) => /^on/i.test(a.name) || /^(href|src|action|data)$/i.test(a.name) && /^\s*(javascript|data):/i.test(a.value)).map((a) => e.outerHTML.slice(0, 200))),
		...[...document.querySelectorAll("body script, body iframe, body style, body object, body embed, body base, body meta, body link")].map((e) => e.outerHTML.slice(0, 200))].join("\n")`
	if found := eval[string](p, harm); found != "" {
		p.t.Errorf("/%s: %s", what, found)
	}
}

func TestDrawingsCannotCarryScripts(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	f.drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100" viewBox="0 0 200 100" onload="pwned()"><style>@import "//evil.example";</style><script>pwned()</script>` +
		`<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="pwned()"/></body></foreignObject><a href="javascript:pwned()"><text x="9" y="9">click</text></a>` +
		`<g id="state-a" onclick="pwned()"><rect x="1" y="1" width="50" height="20" class="s" style="background:url(//evil.example)"/><text x="5" y="12">&lt;script&gt;pwned()&lt;/script&gt;</text></g>` +
		`<use href="//evil.example/x.svg#y"/><image href="//evil.example/x.png"/><path d="M0 0" marker-end="url(//evil.example#a)"/><animate attributeName="href" values="javascript:pwned()"/></svg>`
	p := newTab(t, f.server.URL)
	p.open(f.URL)
	p.run(`window.ran = []; window.pwned = () => ran.push(location.href)`)
	p.visit(f, "statecharts/subscription")
	p.unharmed("statecharts/subscription")
	if got, want := eval[string](p, `document.querySelector(".drawing").innerHTML.replaceAll(/\s+/g, " ")`), `<svg width="200" height="100" viewBox="0 0 200 100" aria-label="States. Active: none."><g id="state-a"><rect x="1" y="1" width="50" height="20" class="s"></rect><text x="5" y="12">&lt;script&gt;pwned()&lt;/script&gt;</text></g><path d="M0 0"></path></svg>`; got != want {
		t.Errorf("the drawing became\n%s\nwant\n%s", got, want)
	}
}
