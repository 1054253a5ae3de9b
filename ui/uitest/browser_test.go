// Package uitest drives the dashboard in a real browser.
package uitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	clocks "github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/testdb"
)

var clock = clocks.System

// browsers are the programs that can be driven, the smallest first.
var browsers = []string{"chromium-headless-shell", "headless-shell", "chromium", "chromium-browser", "google-chrome"}

var errNoBrowser = errors.New("no Chromium was found: install chromium-headless-shell, or name a browser in PERDURE_TEST_CHROMIUM")

func findBrowser() (string, error) {
	if name := os.Getenv("PERDURE_TEST_CHROMIUM"); name != "" {
		return name, nil
	}
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// browser is started once for all tests.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := findBrowser()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 860), chromedp.Flag("lang", "en-GB"),
		chromedp.WSURLReadTimeout(testdb.Patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, _ := chromedp.NewExecAllocator(ended, options...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
})

// ended is over when the tests are, and ends the browser.
var ended, end = context.WithCancel(context.Background())

func TestMain(m *testing.M) {
	code := m.Run()
	end()
	os.Exit(code)
}

// A tab is a page of the browser with cookies and storage of its own. What goes
// wrong in it, or leaves our host, fails the test.
type tab struct {
	t     *testing.T
	ctx   context.Context
	host  string
	mu    sync.Mutex
	wrong []string
	quiet bool // failed requests are expected now
}

func newTab(t *testing.T, host string) *tab {
	t.Helper()
	b, err := browser()
	if errors.Is(err, errNoBrowser) && os.Getenv("PERDURE_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 10*testdb.Patience)
	p := &tab{t: t, ctx: ctx, host: host}
	t.Cleanup(func() { p.check(); stop(); cancel() })
	p.do(chromedp.Navigate("about:blank"))
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // tabs of other tests are open too
	p.must(err)
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(stay, testdb.Patience.Milliseconds())})
	p.must(err)
	p.watch()
	return p
}

// stay has the page keep what it takes away by itself, until a test that is slow has
// seen it: messages after 5 or 12 seconds, the first of two keys and the mark of what
// was copied after 1.5.
const stay = `{
	const later = window.setTimeout;
	window.setTimeout = (act, ms, ...more) => later(act, [1500, 5000, 12000].includes(ms) ? %d : ms, ...more);
}`

func (p *tab) watch() {
	console := chromedp.Console(p.ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.Type != chromedp.ConsoleLog && m.Type != "info" && m.Type != "debug" {
				p.note(fmt.Sprintf("console %s: %s (%s)", m.Type, m.Text, m.URL))
			}
		}
	}()
	_, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{})
	p.must(err)
	requests := chromedp.Events(p.ctx, network.RequestWillBeSent)
	go func() {
		for r, err := range requests {
			if err != nil {
				return
			}
			if url := r.Request.URL; !strings.HasPrefix(url, p.host) && !strings.HasPrefix(url, "data:") && url != "about:blank" {
				p.note("request to another host: " + url)
			}
		}
	}()
}

func (p *tab) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet && (strings.Contains(text, "ERR_") || strings.Contains(text, "Failed to load resource")) {
		return
	}
	p.wrong = append(p.wrong, text)
}

// hush says whether failed requests are expected now.
func (p *tab) hush(expected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = expected
}

// check fails the test if anything went wrong so far.
func (p *tab) check() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		p.t.Error(w)
	}
	p.wrong = nil
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.must(chromedp.Do(p.ctx, actions...))
}

// open goes to an address and waits until the page shows what it has read.
func (p *tab) open(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
	p.settled()
}

// settled waits until the page has a title and nothing is being loaded.
func (p *tab) settled() {
	p.t.Helper()
	p.wait("the page has settled", `!!document.querySelector("main h1") && !document.querySelector("main [aria-busy=true]")`)
}

// wait waits until an expression is true.
func (p *tab) wait(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testdb.Patience)
	defer cancel()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(15*time.Millisecond), chromedp.WithPollingTimeout(0)) // ctx bounds it
	if _, err := chromedp.Run(ctx, poll); err != nil {
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector("dialog, main")?.innerText.slice(0, 2000) + "\n focus: " + document.activeElement?.outerHTML.slice(0, 300) + " value: " + document.activeElement?.value`))
		p.t.Fatalf("%s: %v\nthe page shows: %s", what, err, text)
	}
}

func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	p.must(err)
	return v
}

// run evaluates an expression for what it does.
func (p *tab) run(expression string) { p.t.Helper(); eval[any](p, "(()=>{"+expression+"})()") }

// keys types. As on a keyboard, what a page prevents when a key is pressed is not
// typed: chromedp's own keys type it in an event of its own, all the same.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, r := range strings.Join(keys, "") {
		events := kb.Encode(r)
		if _, known := kb.Keys[r]; known && len(events) == 3 { // down, its text, up
			events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			events = slices.Delete(events, 1, 2)
		}
		for _, e := range events {
			_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, *e)
			p.must(err)
		}
	}
}

// screen sets the theme and the size of the window.
func (p *tab) screen(theme string, width, height int64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	p.must(err)
	p.do(chromedp.EmulateViewport(width, height))
}
