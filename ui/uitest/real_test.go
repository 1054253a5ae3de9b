package uitest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/perdure/perdure"
	hooks "github.com/perdure/perdure/hook"
	clocks "github.com/perdure/perdure/internal/clock"
	demo "github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/server"
	tasks "github.com/perdure/perdure/task"
)

// shop is the sample shop behind the real server.
type shop struct {
	server *server.Server
	http   *httptest.Server
	mux    *http.ServeMux
}

// newShop runs the shop on SQLite, as perdure dev does.
func newShop(t *testing.T) *shop {
	t.Helper()
	warp, tables := clocks.NewWarp(0), demo.NewTables()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{tables.Schema}, Clock: warp})
	random := rand.New(rand.NewPCG(3, 4))
	var mu sync.Mutex
	sold, err := demo.New(eng, tables, demo.Options{Sent: t.TempDir(), Every: 200 * time.Millisecond, Lease: time.Hour, Random: func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}})
	enginetest.NoError(t, err)
	worker, err := tasks.NewWorker(eng, &tasks.Options{Senders: sold.Senders(), Lease: time.Hour})
	enginetest.NoError(t, err)
	s := &shop{mux: http.NewServeMux()}
	s.server, err = server.New(eng, &server.Options{
		Definitions: sold.Definitions(), Hooks: []*hooks.Hooks{sold.Hooks()}, Tasks: worker, Actors: sold.Actors(), Alarms: sold.Alarms(), Dev: true, Version: "v0.0.0-test",
	})
	enginetest.NoError(t, err)
	enginetest.NoError(t, s.server.Start())
	for pattern, handler := range demo.Routes(demo.NewControl(eng, warp), sold.Mailbox()) {
		s.mux.Handle(pattern, handler)
	}
	s.mux.Handle("/", s.server)
	s.listen(t, "127.0.0.1:0")
	s.run(t, sold)
	return s
}

func (s *shop) listen(t *testing.T, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	enginetest.NoError(t, err)
	s.http = httptest.NewUnstartedServer(s.mux)
	s.http.Listener.Close()
	s.http.Listener = listener
	s.http.Start()
}

// run has customers order until the test ends.
func (s *shop) run(t *testing.T, sold *demo.Shop) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- sold.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		s.http.CloseClientConnections()
		s.http.Close()
		bounded, stop := context.WithTimeout(context.Background(), enginetest.Patience)
		defer stop()
		_ = s.server.Stop(bounded) // work that is cut off is run again, but not here
	})
}

// first opens the first thing of a list, once there is one.
func (p *tab) first(url string) {
	p.t.Helper()
	p.open(url)
	p.wait("there is a row at "+url, `!!document.querySelector("tbody [data-main]")`)
	p.run(`document.querySelector("tbody [data-main]").click()`)
	p.wait("its page is open", `location.pathname.split("/").length > 2`)
	p.settled()
	p.drawn()
}

func TestTheDashboardShowsTheRealServer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	for _, page := range []string{"", "upcoming", "dead", "instances", "actors", "hooks", "tasks", "alarms", "schedules", "definitions", "statecharts", "outbox", "nodes", "audit", "mailbox", "settings"} {
		p.open(s.http.URL + "/" + page)
		p.drawn()
		if failure := eval[string](p, `document.querySelector("main .failure")?.textContent ?? ""`); failure != "" {
			t.Errorf("/%s: %s", page, failure)
		}
	}
	for _, page := range []string{"instances", "actors", "hooks", "tasks", "alarms", "definitions", "statecharts"} {
		p.first(s.http.URL + "/" + page)
		p.accessible("the first of "+page, "html")
		if failure := eval[string](p, `document.querySelector("main .failure")?.textContent ?? ""`); failure != "" {
			t.Errorf("the first of %s: %s", page, failure)
		}
	}
}

// What is dragged, changed in place and scrubbed with made-up data is so with the
// real server too.
func TestTheRealServerFollowsDragsAndChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	p.open(s.http.URL + "/schedules/report-on-weekdays")
	p.fill("[data-change] [name=spec]", "45 3 * * *")
	p.wait("its ticks are told", `document.querySelector("[data-ticks]")?.textContent.includes("03:45")`)
	p.click("[data-save]:enabled")
	p.wait("the schedule is changed", `document.querySelector(".lead").textContent.includes("03:45") && document.querySelector("[data-save]").disabled`)

	eval[any](p, `fetch("/v1/alarms/far", {method: "PUT", headers: {"Content-Type": "application/json"}, body: JSON.stringify({type: "remind", delay: "72h"})}).then((r) => r.status)`)
	p.open(s.http.URL + "/upcoming?range=week&kind=alarm")
	alone := `.lane-track button[aria-label*="remind"]:not(.many)` // all others are due today
	p.wait("an alarm is due later", fmt.Sprintf(`!!document.querySelector(%q)`, alone))
	p.run(fmt.Sprintf(`[...document.querySelectorAll(%q)].at(-1).focus()`, alone))
	p.keys(kb.ArrowRight, kb.ArrowRight, kb.Enter)
	p.wait("it asks", `document.activeElement?.matches("dialog [data-confirm]")`)
	want := eval[string](p, `new Date(document.querySelector("dialog input").value).toISOString()`)
	p.keys(kb.Enter)
	p.wait("it is moved", `document.querySelector(".toast")?.textContent.includes("Moved to")`)
	p.open(s.http.URL + "/alarms/far")
	p.wait("the alarm is due then", fmt.Sprintf(`document.querySelector(".countdown time")?.getAttribute("datetime") === %q`, want))

	p.open(s.http.URL + "/instances?definition=order&status=done")
	p.wait("an order is done", `!!document.querySelector("tbody [data-main]")`)
	p.first(s.http.URL + "/instances?definition=order&status=done")
	p.wait("its last step is told", `document.querySelector(".point")?.textContent.includes("finished the instance as done")`)
	last := eval[string](p, `document.querySelector(".point").textContent`)
	p.keys("[")
	p.wait("the step before is told", fmt.Sprintf(`document.querySelectorAll(".drawing .on").length === 1 && document.querySelector(".point").textContent !== %q`, last))
	p.open(s.http.URL + "/definitions/order")
	p.wait("the ways are drawn", `document.querySelectorAll(".drawing .edge.taken").length > 0`)
}

func TestTheRealServerDoesWhatTheDashboardAsks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	p.open(s.http.URL + "/definitions/parcel")
	p.act("start a parcel", "[data-action=create]", "Started parcel")
	p.wait("the parcel is shown", `location.pathname.startsWith("/instances/")`)

	p.open(s.http.URL + "/actors/bike/1")
	p.drawn() // what is below stays where it is then
	p.act("send an event", "[data-event=RETURN]", "Sent RETURN")

	p.open(s.http.URL + "/schedules")
	p.act("run a schedule", "[data-action=fire]", "Run now")
	p.act("pause a schedule", "[data-action=pause]", "Pause")
	p.wait("it is paused", `document.querySelector("main").textContent.includes("paused")`)
	p.act("resume it", "[data-action=resume]", "Resume")

	p.open(s.http.URL + "/tasks")
	p.act("send a mail", "[data-action=create]", "Started email")

	p.open(s.http.URL + "/alarms")
	p.act("set an alarm", "[data-action=create]", "Set order")
	p.wait("the alarm is shown", `location.pathname === "/alarms/order"`)
	p.settled()
	p.act("move it", "[data-action=move]", "Moved to")
	p.hush(true) // a read that is under way meanwhile finds nothing
	p.act("remove it", "[data-action=cancel]", "Cancel")
	p.settled()
	p.hush(false)

	p.open(s.http.URL + "/statecharts")
	p.act("store a machine", "[data-action=create]", "Saved order")
	p.wait("the machine is shown", `location.pathname === "/statecharts/order"`)
	p.settled()
	p.act("create an actor of it", "[data-action=create]", "Created order order")

	p.open(s.http.URL + "/instances?definition=order")
	p.wait("there are orders", `document.querySelectorAll("tbody tr").length > 3`)
	p.act("cancel all that match", "[data-all=cancel]", "Cancel:")

	// The first token ends the time in which everybody on this machine is admin, also for
	// this page: it asks for a token, and goes on showing the one that it has made.
	p.open(s.http.URL + "/settings")
	p.hush(true)
	p.act("make a token", "[data-action=token]", "")
	p.wait("the token is shown", `document.querySelector("dialog code")?.textContent.startsWith("perdure_sk_")`)
	eval[any](p, `import(new URL("api.mjs", document.querySelector("script[src$='.mjs']").src).href).then((api) => api.get("tokens")).catch(() => null)`)
	p.wait("the page asks for a token", `!!document.querySelector("main.signin")`)
	if token := eval[string](p, `document.querySelector("dialog[open] code")?.textContent ?? ""`); !strings.HasPrefix(token, "perdure_sk_") {
		t.Errorf("the new token is no longer shown: %q", token)
	}
}

// send makes a request of the real server.
func (s *shop) send(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+"/v1/"+path, strings.NewReader(body))
	enginetest.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	enginetest.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	enginetest.NoError(t, err)
	if res.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, raw)
	}
	return string(raw)
}

// An operator whose form is older than what somebody else has saved is told, and
// nothing of either is lost without a word.
func TestAFormThatIsOutdatedIsNotSaved(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	const path = "schedules/report-on-weekdays"
	p.open(s.http.URL + "/" + path)
	p.fill("[data-change] [name=spec]", "45 3 * * *")
	s.send(t, http.MethodPatch, path, `{"spec": "15 4 * * *", "missed": "skip"}`)
	p.wait("the page shows what somebody else has saved", `document.querySelector(".lead").textContent.includes("04:15")`)
	if got := eval[string](p, `document.querySelector("[data-change] [name=spec]").value`); got != "45 3 * * *" {
		t.Errorf("what was typed is %q now", got)
	}
	p.hush(true)
	p.click("[data-save]:enabled")
	p.wait("the operator is told", `document.querySelector("[data-outdated]")?.textContent.includes("changed by another user")`)
	p.accessible("outdated", "main")
	if stored := s.send(t, http.MethodGet, path, ""); !strings.Contains(stored, `"spec":"15 4 * * *"`) {
		t.Errorf("it is changed: %s", stored)
	}
	p.click("[data-outdated] button")
	p.wait("the new one is in the form", `!document.querySelector("[data-outdated]") && document.querySelector("[data-save]").disabled
		&& ["15 4 * * *", "skip"].join() === [...document.querySelectorAll("[data-change] [name=spec], [data-change] [name=missed]")].map((i) => i.value).join()`)
	for _, spec := range []string{"45 3 * * *", "50 3 * * *"} { // one right after the other
		p.fill("[data-change] [name=spec]", spec)
		p.click("[data-save]:enabled")
		// While a save is under way, Save is disabled and Undo is not.
		p.wait("it is saved", `[...document.querySelectorAll("[data-change] .buttons button")].every((b) => b.disabled) && !document.querySelector("[data-change] [role=alert]")`)
		if stored := s.send(t, http.MethodGet, path, ""); !strings.Contains(stored, fmt.Sprintf(`"spec":%q`, spec)) || !strings.Contains(stored, `"missed":"skip"`) {
			t.Errorf("stored is %s", stored)
		}
	}
}

// Every list acts on what was selected, and on all that match, with one request.
func TestEveryListActsOnManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.send(t, http.MethodPut, "statecharts/door", `{"definition":{"id":"door","initial":"shut","states":{"shut":{}}}}`)
	for i := range 5 {
		s.send(t, http.MethodPost, "instances", `{"definition":"parcel","queue":"many","delay":"24h"}`)
		s.send(t, http.MethodPost, "hooks", `{"namespace":"shop","name":"receipt","delay":"24h"}`)
		s.send(t, http.MethodPost, "processes/later", `{"payload":{},"at":"2100-01-01T00:00:00Z"}`)
		s.send(t, http.MethodPut, fmt.Sprintf("alarms/many-%d", i), `{"type":"many","delay":"24h"}`)
		s.send(t, http.MethodPost, "actors", fmt.Sprintf(`{"type":"door","id":"many-%d"}`, i))
	}
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	for _, c := range []struct{ list, action, left string }{
		{"instances?queue=many", "cancel", "instances?queue=many&status=live"},
		{"hooks?name=receipt&status=scheduled", "cancel", "hooks?name=receipt&status=scheduled"},
		{"tasks?type=later", "cancel", "tasks?type=later&status=scheduled"},
		{"alarms?type=many", "cancel", "alarms?type=many"},
		{"actors?type=door", "stop", "actors?type=door&status=active"},
	} {
		kind, _, _ := strings.Cut(c.list, "?")
		p.open(s.http.URL + "/" + c.list)
		p.wait("they are listed", `document.querySelectorAll("tbody tr").length >= 5`)
		p.run(`for (const box of [...document.querySelectorAll("tbody input")].slice(0, 2)) box.click()`)
		p.wait("two are selected", `document.querySelector(".bar .check").textContent.includes("2 selected")`)
		p.act(c.action+" two "+kind, "[data-bulk="+c.action+"]", ": 2 "+strings.TrimSuffix(kind, "s"))
		p.open(s.http.URL + "/" + c.list)
		p.act(c.action+" all "+kind, "[data-all="+c.action+"]", ": 3 "+strings.TrimSuffix(kind, "s"))
		if left := s.send(t, http.MethodGet, c.left, ""); !strings.Contains(left, `"data":[]`) {
			t.Errorf("%s: what is left is %s", c.list, left)
		}
	}
}

// The delays of actors are listed among the alarms, and fired there.
func TestDelaysOfActorsAreListedWithTheAlarms(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.send(t, http.MethodPut, "statecharts/lamp", `{"definition":{"id":"lamp","initial":"on","states":{"on":{"after":{"3600000":"off"}},"off":{}}}}`)
	s.send(t, http.MethodPost, "actors", `{"type":"lamp","id":"porch/left"}`)
	p := newTab(t, s.http.URL)
	p.screen("light", 1280, 860)
	p.open(s.http.URL + "/alarms?kind=timer&actor=lamp/porch/left")
	p.wait("the delay is listed", `document.querySelectorAll("tbody tr").length === 1`)
	p.accessible("the delays of actors", "html")
	p.run(`document.querySelector("tbody input").click()`)
	p.act("fire it", "[data-bulk=fire]", ": 1 alarm")
	if a := s.send(t, http.MethodGet, "actors/lamp/porch%2Fleft", ""); !strings.Contains(a, `"state":"off"`) {
		t.Errorf("the actor is %s", a)
	}
}

// act does an action, answers its dialog, and waits for what the page says then.
func (p *tab) act(what, selector, said string) {
	p.t.Helper()
	p.click(selector)
	p.wait(what+" asks or is done", `!!document.querySelector("dialog[open], .toast")`)
	eventually(p.t, what+" is confirmed", func() bool {
		if text := eval[string](p, `document.querySelector("dialog .wrong, .toast.is-bad")?.textContent ?? ""`); text != "" {
			p.t.Fatalf("%s: %s", what, text)
		}
		return eval[bool](p, confirm)
	})
	if said == "" {
		return
	}
	eventually(p.t, what+" says "+said, func() bool {
		text := eval[string](p, `[...document.querySelectorAll(".toast")].map((t) => t.textContent).join("; ")`)
		return strings.Contains(text, said)
	})
	p.run(`for (const b of document.querySelectorAll(".toast button")) b.click()`)
}

func TestThePageComesBackAfterTheRealServerRestarts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := newTab(t, s.http.URL)
	p.open(s.http.URL + "/instances")
	p.wait("it is live", `document.querySelector("[data-live]").dataset.live === "live"`)
	p.hush(true)
	address := s.http.Listener.Addr().String()
	s.http.CloseClientConnections()
	s.http.Close()
	p.wait("it says so", `document.querySelector("[data-live]").dataset.live === "offline"`)
	newest := eval[string](p, `document.querySelector("tbody [data-main]")?.href ?? ""`)
	s.listen(t, address)
	p.wait("it is live again", `document.querySelector("[data-live]").dataset.live === "live"`)
	eventually(t, "new orders are shown", func() bool {
		return eval[string](p, `document.querySelector("tbody [data-main]")?.href ?? ""`) != newest
	})
}
