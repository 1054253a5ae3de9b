package uitest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// asked is what each page asks of the server when all its actions are done, the
// first of each.
var asked = map[string][]string{
	"": {
		`DELETE pauses/hook:notify-crm`,
		`POST instances/actions {"action":"run","filter":{"definition":"charge","status":["retrying"]}}`,
		`PUT pauses/fsm:charge {"reason":"dial tcp 127.0.0.1:7580: connect: connection refused"}`,
	},
	"upcoming": {
		`POST alarms/subscription ada/fire {}`,
		`POST alarms/subscription ada/move {"at":"TIME"}`,
		`POST alarms/subscription ada/skip {}`,
	},
	"dead": {
		`POST dead/retry {"kind":"instances","error":"charge card: provider answered 502","name":"order","dry_run":true}`,
		`POST dead/retry {"kind":"instances","error":"charge card: provider answered 502","name":"order"}`,
	},
	"instances": {
		`POST instances {"definition":"order","state":{"order":"order","amount":0}}`,
		`POST instances/actions {"action":"cancel","filter":{"status":["ready","running","retrying","scheduled","waiting","no_worker"]},"dry_run":true}`,
		`POST instances/actions {"action":"cancel","filter":{"status":["ready","running","retrying","scheduled","waiting","no_worker"]}}`,
		`POST instances/actions {"action":"cancel","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
		`POST instances/actions {"action":"delete","filter":{"status":["failed","quarantined"]},"dry_run":true}`,
		`POST instances/actions {"action":"delete","filter":{"status":["failed","quarantined"]}}`,
		`POST instances/actions {"action":"delete","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
		`POST instances/actions {"action":"retry","filter":{"status":["failed","quarantined"]},"dry_run":true}`,
		`POST instances/actions {"action":"retry","filter":{"status":["failed","quarantined"]}}`,
		`POST instances/actions {"action":"retry","ids":["ID","ID","ID"]}`,
		`POST instances/actions {"action":"run","filter":{"status":["retrying","scheduled"]},"dry_run":true}`,
		`POST instances/actions {"action":"run","filter":{"status":["retrying","scheduled"]}}`,
		`POST instances/actions {"action":"run","ids":["ID"]}`,
		`POST instances/actions {"action":"terminate","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
	},
	"instances?status=failed": {
		`POST instances {"definition":"order","state":{"order":"order","amount":0}}`,
		`POST instances/actions {"action":"cancel","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
		`POST instances/actions {"action":"delete","filter":{"status":["failed"]},"dry_run":true}`,
		`POST instances/actions {"action":"delete","filter":{"status":["failed"]}}`,
		`POST instances/actions {"action":"delete","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
		`POST instances/actions {"action":"retry","filter":{"status":["failed"]},"dry_run":true}`,
		`POST instances/actions {"action":"retry","filter":{"status":["failed"]}}`,
		`POST instances/actions {"action":"retry","ids":["ID","ID","ID"]}`,
		`POST instances/actions {"action":"run","ids":["ID"]}`,
		`POST instances/actions {"action":"terminate","ids":["ID","ID","ID","ID","ID","ID","ID"]}`,
	},
	"instances/" + id(3): {
		`POST instances {"definition":"order","state":{"amount":12999,"items":[{"n":2,"sku":"tea"},{"n":1,"sku":"cup"}],"order":"4711","paid":true,"serial":9007199254740993},"queue":"default","unique_key":"order-4711"}`,
		`POST instances/ID/cancel {"reason":"cancelled in the dashboard"}`,
		`POST instances/ID/signals {"name":"packed","payload":{}}`,
		`POST instances/ID/terminate {"reason":"terminated in the dashboard"}`,
	},
	"actors": {
		`POST actors {"type":"order","id":"order","input":{}}`,
		`POST actors/actions {"action":"resume","filter":{"status":["quarantined"]},"dry_run":true}`,
		`POST actors/actions {"action":"resume","filter":{"status":["quarantined"]}}`,
		`POST actors/actions {"action":"resume","ids":["subscription/dora"]}`,
		`POST actors/actions {"action":"stop","filter":{"status":["active"]},"dry_run":true}`,
		`POST actors/actions {"action":"stop","filter":{"status":["active"]}}`,
		`POST actors/actions {"action":"stop","ids":["subscription/ada"]}`,
	},
	"actors/subscription/ada": {
		`POST actors/subscription/ada/events {"type":"CANCEL"}`,
		`POST actors/subscription/ada/events {"type":"PAYMENT"}`,
		`POST actors/subscription/ada/events {"type":"PAYMENT"}`,
		`POST actors/subscription/ada/events {"type":"PAYMENT_FAILED"}`,
		`POST actors/subscription/ada/stop {}`,
		`POST actors/subscription/ada/timers/billing/due/fire {}`,
		`POST actors/subscription/ada/timers/billing/due/move {"at":"TIME"}`,
		`POST actors/subscription/ada/timers/billing/due/skip {}`,
	},
	"hooks": {
		`POST hooks {"namespace":"order","name":"order","payload":{}}`,
		`POST hooks/actions {"action":"cancel","filter":{"status":["ready","retrying","scheduled"]},"dry_run":true}`,
		`POST hooks/actions {"action":"cancel","filter":{"status":["ready","retrying","scheduled"]}}`,
		`POST hooks/actions {"action":"cancel","ids":["ID"]}`,
		`POST hooks/actions {"action":"retry","filter":{"status":["failed","quarantined","cancelled"]},"dry_run":true}`,
		`POST hooks/actions {"action":"retry","filter":{"status":["failed","quarantined","cancelled"]}}`,
		`POST hooks/actions {"action":"retry","ids":["ID"]}`,
		`POST hooks/actions {"action":"run","filter":{"status":["retrying","scheduled"]},"dry_run":true}`,
		`POST hooks/actions {"action":"run","filter":{"status":["retrying","scheduled"]}}`,
		`POST hooks/actions {"action":"run","ids":["ID"]}`,
	},
	"hooks/" + id(202): {
		`DELETE hooks/ID`,
		`POST hooks/ID/replay {}`,
		`POST hooks/ID/retry {}`,
	},
	"tasks": {
		`POST processes/email {"payload":{"from":"shop@example.com","to":"you@example.com","subject":"Hello","text":"It works."}}`,
		`POST tasks/actions {"action":"cancel","filter":{"status":["ready","retrying","scheduled"]},"dry_run":true}`,
		`POST tasks/actions {"action":"cancel","filter":{"status":["ready","retrying","scheduled"]}}`,
		`POST tasks/actions {"action":"cancel","ids":["7"]}`,
		`POST tasks/actions {"action":"retry","filter":{"status":["failed","quarantined"]},"dry_run":true}`,
		`POST tasks/actions {"action":"retry","filter":{"status":["failed","quarantined"]}}`,
		`POST tasks/actions {"action":"retry","ids":["8"]}`,
		`POST tasks/actions {"action":"run","filter":{"status":["retrying","scheduled"]},"dry_run":true}`,
		`POST tasks/actions {"action":"run","filter":{"status":["retrying","scheduled"]}}`,
		`POST tasks/actions {"action":"run","ids":["7"]}`,
	},
	"tasks/8": {
		`POST tasks/8/retry {}`,
	},
	"alarms": {
		`POST alarms/actions {"action":"cancel","filter":{"status":["ready","running","retrying","scheduled","failed","quarantined"]},"dry_run":true}`,
		`POST alarms/actions {"action":"cancel","filter":{"status":["ready","running","retrying","scheduled","failed","quarantined"]}}`,
		`POST alarms/actions {"action":"cancel","ids":["trial-ends","cleanup-1","poll","sync"]}`,
		`POST alarms/actions {"action":"fire","filter":{"status":["ready","retrying","scheduled"]},"dry_run":true}`,
		`POST alarms/actions {"action":"fire","filter":{"status":["ready","retrying","scheduled"]}}`,
		`POST alarms/actions {"action":"fire","ids":["trial-ends","cleanup-1","poll"]}`,
		`POST alarms/actions {"action":"retry","filter":{"status":["failed","quarantined"]},"dry_run":true}`,
		`POST alarms/actions {"action":"retry","filter":{"status":["failed","quarantined"]}}`,
		`POST alarms/actions {"action":"retry","ids":["sync"]}`,
		`POST alarms/actions {"action":"skip","filter":{"status":["ready","retrying","scheduled"]},"dry_run":true}`,
		`POST alarms/actions {"action":"skip","filter":{"status":["ready","retrying","scheduled"]}}`,
		`POST alarms/actions {"action":"skip","ids":["trial-ends","cleanup-1","poll"]}`,
		`PUT alarms/order {"type":"order","at":"TIME","payload":{}}`,
	},
	"alarms/trial-ends": {
		`DELETE alarms/trial-ends`,
		`POST alarms/trial-ends/fire {}`,
		`POST alarms/trial-ends/move {"at":"TIME"}`,
		`POST alarms/trial-ends/skip {}`,
	},
	"schedules": {
		`DELETE schedules/nightly-report`,
		`DELETE schedules/nightly-report`,
		`DELETE schedules/sweep`,
		`DELETE schedules/weekly`,
		`POST schedules/nightly-report/fire {}`,
		`POST schedules/nightly-report/fire {}`,
		`POST schedules/nightly-report/pause {}`,
		`POST schedules/nightly-report/pause {}`,
		`POST schedules/sweep/fire {}`,
		`POST schedules/sweep/resume {}`,
		`POST schedules/sweep/resume {}`,
		`POST schedules/weekly/pause {}`,
		`PUT schedules/order {"spec":"0 9 * * *","zone":"UTC","missed":"once","definition":"order"}`,
	},
	"schedules/nightly-report": {
		`DELETE schedules/nightly-report`,
		`POST schedules/nightly-report/fire {}`,
		`POST schedules/nightly-report/pause {}`,
	},
	"definitions/order": {
		`POST instances {"definition":"order","state":{"order":"order","amount":0}}`,
	},
	"statecharts": {
		`POST statecharts/check {"definition":{"id":"light","initial":"green","states":{"green":{"after":{"30000":"yellow"}},"yellow":{"after":{"5000":"red"}},"red":{"on":{"GO":"green"}}}}}`,
		`PUT statecharts/order {"definition":{"id":"light","initial":"green","states":{"green":{"after":{"30000":"yellow"}},"yellow":{"after":{"5000":"red"}},"red":{"on":{"GO":"green"}}}}}`,
	},
	"statecharts/subscription": {
		`POST actors {"type":"subscription","id":"order","input":{}}`,
		`POST statecharts/check {"definition":{"id":"subscription","initial":"trial"}}`,
		`PUT statecharts/subscription {"definition":{"id":"subscription","initial":"trial"}}`,
	},
	"nodes": {
		`POST nodes/ID/drain {}`,
		`POST nodes/ID/drain {}`,
	},
	"settings": {
		`DELETE tokens/1`,
		`DELETE tokens/2`,
		`POST tokens {"name":"order","role":"viewer"}`,
	},
}

// first marks the first button of every action of a page, and returns their number.
const first = `(() => {
	const seen = new Map();
	for (const b of document.querySelectorAll("main [data-action], main [data-bulk], main [data-all], main [data-event]")) {
		const name = JSON.stringify(b.dataset);
		if (!seen.has(name)) { seen.set(name, b); b.setAttribute("test", seen.size); }
	}
	return seen.size;
})()`

// doAll clicks every action of a page and answers the dialogs, and returns what
// was asked of the server.
func (p *tab) doAll(f *fake, page string) []string {
	p.t.Helper()
	p.visit(f, page)
	all := []string{}
	for i := range eval[int](p, first) {
		p.visit(f, "no/such/page") // so that every action starts from the same page
		p.visit(f, page)
		eval[int](p, first)
		button := fmt.Sprintf("[test='%d']", i+1)
		if eval[bool](p, fmt.Sprintf(`document.querySelector(%q).disabled`, button)) {
			p.click(`.bar input[type=checkbox]`)
		}
		f.changed()
		name := eval[string](p, fmt.Sprintf(`document.querySelector(%q).textContent`, button))
		p.click(button)
		all = append(all, p.answer(f, page+": "+name)...)
	}
	return all
}

// answer fills the dialog that an action opens, if it does, and confirms it.
func (p *tab) answer(f *fake, what string) []string {
	p.t.Helper()
	var all []string
	eventually(p.t, what+" asks or does something", func() bool {
		all = append(all, f.changed()...)
		return eval[bool](p, `!!document.querySelector("dialog[open]") || !!document.querySelector(".toast")`)
	})
	if eval[bool](p, `!!document.querySelector("dialog[open]")`) {
		if eval[bool](p, `!!document.querySelector("dialog input:not([name=why]), dialog textarea")`) { // plain questions are all alike
			p.accessible(what, "dialog")
		}
		// A form may grow once it knows the schema of what was filled in.
		eventually(p.t, what+" is confirmed", func() bool { return eval[bool](p, confirm) })
	}
	p.wait(what+" is done", `!document.querySelector("dialog [data-confirm]") && !!document.querySelector(".toast, dialog")`)
	if text := eval[string](p, `document.querySelector(".toast.is-bad, dialog .wrong")?.textContent ?? ""`); text != "" {
		p.t.Errorf("%s: %s", what, text)
	}
	p.run(`for (const b of document.querySelectorAll(".toast button, dialog button.primary")) b.click()`)
	return append(all, f.changed()...)
}

// masked is what differs from run to run, or is long: ids and times.
var masked = regexp.MustCompile(`0199a[0-9a-f-]{31}|20\d\d-[0-9T:.-]+Z`)

var names = map[byte]string{'0': "ID", '2': "TIME"}

// confirm fills the next field that is required in a dialog, or confirms it; true
// if the dialog is gone.
const confirm = `(() => {
	if (document.querySelector("dialog [aria-busy=true]")) return false;
	for (const i of document.querySelectorAll("dialog input[required]")) {
		if (i.value) continue;
		i.value = i.type === "number" ? 7 : "order";
		i.dispatchEvent(new Event("input", {bubbles: true}));
		return false;
	}
	document.querySelector("dialog [data-confirm]:enabled")?.click();
	return !document.querySelector("dialog [data-confirm]");
})()`

func TestEveryActionCanBeClicked(t *testing.T) {
	t.Parallel()
	f := newFake(t, sample())
	p := newTab(t, f.server.URL)
	p.screen("light", 1280, 860)
	p.open(f.URL)
	for _, page := range append([]string{"instances?status=failed"}, pages...) {
		got := p.doAll(f, page)
		for i := range got {
			got[i] = masked.ReplaceAllStringFunc(strings.TrimSpace(got[i]), func(m string) string { return names[m[0]] })
		}
		slices.Sort(got)
		if diff := cmp.Diff(asked[page], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("/%s asks for other things (-want +got):\n%s", page, diff)
		}
	}
}
