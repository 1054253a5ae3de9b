package uitest

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

type object = map[string]any

func list(rows ...any) object {
	return object{"data": append([]any{}, rows...), "next_cursor": nil}
}

// start is when the tests began: the data is told relative to it.
var start = clock.Now()

func at(ago time.Duration) string { return start.Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z") }

const (
	sec    = time.Second
	minute = time.Minute
	day    = 24 * time.Hour
)

func id(n int) string { return fmt.Sprintf("0199a%03x-7c00-7000-8000-%012x", n, n*7919) }

const stack = "charge card: provider answered 502\ngoroutine 41 [running]:\nshop.charge({0x1400, 0x12})\n\t/src/shop/charge.go:48 +0x1c4\ngithub.com/perdure/perdure/fsm.(*queue).run(0x14000)\n\t/src/fsm/run.go:121 +0x88"

// sample is what the fake answers, by path; * is any name.
func sample() map[string]any {
	data := map[string]any{
		"me":       object{"name": "local", "role": "admin", "auth": "open", "dev": true, "version": "v0.1.0", "database": "SQLite"},
		"overview": overview(), "verdict": verdict(), "upcoming": upcoming(), "dead": dead(), "search": list(object{"kind": "instance", "id": id(1), "title": "order " + id(1), "detail": "running"}),
		"instances": instances(), "instances/*": instance(), "instances/*/history": history(), "instances/*/children": list(row(31, "shipment", "done", "deliver", 2*minute), row(32, "shipment", "waiting", "pickup", 2*minute)),
		"instances/*/signals": list(object{"id": "1", "name": "address-changed", "payload": object{"street": "Main St 5"}, "created_at": at(40 * sec), "status": "waiting"}),
		"facets/instances":    object{"definition": []string{"order", "shipment", "report"}, "queue": []string{"default", "mail"}, "step": []string{"charge", "ship"}},
		"definitions":         list(definition("order"), definition("report")), "definitions/*": definition("order"),
		"schedules": list(schedule("nightly-report", "30 2 * * *", "at 02:30", "Europe/Berlin", false), schedule("sweep", "@every 90s", "every 90 seconds", "UTC", true), unreadSchedule()), "schedules/*": wholeSchedule(), "ticks": object{"valid": true, "text": "at 03:45", "next": []string{at(-6 * time.Hour), at(-30 * time.Hour)}},
		"hooks": list(hook(1, "send-receipt", "done"), hook(2, "notify-crm", "failed"), hook(3, "index", "retrying"), hook(4, "notify-crm", "running")), "hooks/*": hook(2, "notify-crm", "failed"),
		"tasks": list(task(9, "send_email", "done"), task(8, "db_function", "failed"), task(7, "send_sms", "scheduled")), "tasks/*": task(8, "db_function", "failed"),
		"alarms": list(alarm("trial-ends", "reminder", 3*day), alarm("cleanup-1", "cleanup", 20*minute), alarm("poll", "poll", 90*sec), failed(alarm("sync", "sync", -minute))), "alarms/*": alarm("trial-ends", "reminder", 3*day),
		"actors": list(actor("ada", "active"), actor("bob", "done"), actor("cleo", "error"), actor("dora", "quarantined")), "actors/*/*": actor("ada", "active"), "actors/*/*/log": actorLog(),
		"statecharts": list(machineRow()), "statecharts/*": machineRow(),
		"outbox": outboxEntries(), "outbox/consumers": list(object{"name": "warehouse", "position": "00000000000000000000002f", "lag": 12, "updated_at": at(3 * sec)}),
		"audit":        list(auditEntries()...),
		"nodes":        list(node("web-1", "up", 12), node("web-2", "draining", 3)),
		"dev/messages": object{"data": []any{object{"kind": "email", "sent_at": at(4 * minute), "message": object{"from": "shop@example.com", "to": "ada@example.com", "subject": "Your order is on its way", "text": "Hello Ada,\n\nyour order 4711 has left the warehouse.\n\nThe shop", "attempt": 1}}, object{"kind": "email", "sent_at": at(9 * minute), "message": object{"from": "shop@example.com", "to": "bob@example.com", "subject": "Thank you", "text": "Hello Bob"}}}},
		"dev/clock":    object{"now": at(0), "speed": 1, "paused": false, "next_due": at(-70 * sec)},
		"tokens":       list(object{"id": "1", "name": "ci", "role": "operator", "created_at": at(9 * day), "last_used_at": at(5 * minute)}),
		"tokens/actors": list(
			object{"id": "2", "actor": object{"type": "subscription", "id": "4711"}, "caller": object{"type": "client", "id": "ada"}, "created_at": at(2 * minute), "expires_at": at(-day)},
			object{"id": "3", "actor": object{"type": "subscription", "id": "4712"}, "caller": object{"type": "client", "id": "bob"}, "created_at": at(2 * day), "expires_at": at(day)},
		),
	}
	return data
}

func row(n int, fsm, status, step string, ago time.Duration) object {
	o := object{"id": id(n), "definition": fsm, "version": 2, "step": step, "status": status, "queue": "default", "attempt": 1, "created_at": at(ago), "due_at": at(ago - sec)}
	if fsm == "order" {
		o["on_cancel"] = "refund"
	}
	switch status {
	case "done", "failed", "cancelled", "quarantined":
		o["finished_at"] = at(ago / 2)
	}
	if status == "failed" || status == "quarantined" {
		o["error"] = stack
		o["attempt"] = 5
	}
	return o
}

func instances() object {
	statuses := []string{"running", "ready", "waiting", "waiting", "done", "failed", "done", "scheduled", "done", "quarantined", "cancelled", "waiting", "done", "no_worker"}
	steps := []string{"charge", "charge", "pack", "ship", "ship", "charge", "ship", "remind", "ship", "charge", "pack", "charge", "ship", "charge"}
	var rows []any
	for i, s := range statuses {
		fsm := "order"
		if i%5 == 4 {
			fsm = "report"
		}
		rows = append(rows, row(i+1, fsm, s, steps[i], time.Duration(i+1)*37*sec))
	}
	return object{"data": rows, "next_cursor": "bW9yZQ"}
}

func instance() object {
	o := row(3, "order", "waiting", "pack", 4*minute)
	o["state"] = object{"order": "4711", "amount": 12999, "serial": json.Number("9007199254740993"), "items": []any{object{"sku": "tea", "n": 2}, object{"sku": "cup", "n": 1}}, "paid": true}
	o["waits_for"] = "signal"
	o["awaits"], o["awaits_until"] = []string{"packed", "cancelled"}, at(-26*minute)
	o["parent"] = id(90)
	o["unique_key"] = "order-4711"
	return o
}

func history() object {
	entry := func(n int, ago time.Duration, step, outcome, next string, took int) object {
		return object{"seq": n, "at": at(ago), "step": step, "outcome": outcome, "next": next, "duration_ms": took, "attempt": 1, "worker": id(712)}
	}
	failed := entry(3, 230*sec, "charge", "error", "", 4100)
	failed["error"] = stack
	retried := entry(4, 215*sec, "charge", "next", "reserve", 900)
	retried["attempt"] = 2
	beside := func(n int, ago time.Duration, outcome, detail string) object {
		return object{"seq": n, "at": at(ago), "outcome": outcome, "detail": detail, "id": id(31)}
	}
	return list(beside(0, 241*sec, "created", "order"), entry(1, 240*sec, "check", "next", "charge", 40), failed, retried, entry(5, 213*sec, "reserve", "replay", "reserve", 35), entry(6, 150*sec, "reserve", "next", "pack", 310), beside(6, 149500*time.Millisecond, "signal", "address-changed"), beside(6, 149400*time.Millisecond, "child", "shipment: done"), entry(7, 149*sec, "pack", "await", "pack", 12))
}

func definition(name string) object {
	steps := []any{"check", "charge", "reserve", "pack", "ship", "refund", "notify"}
	edge := func(from, to string) object { return object{"from": from, "to": to} }
	return object{
		"name": name, "source": "go", "queue": "default",
		"schema":  object{"type": "object", "required": []string{"order", "amount"}, "properties": object{"order": object{"type": "string"}, "amount": object{"type": "integer", "minimum": 0, "description": "In cents"}, "gift": object{"type": "boolean"}, "speed": object{"enum": []string{"normal", "express"}}}},
		"signals": []any{object{"name": "packed"}, object{"name": "cancelled"}}, "counts": object{"done": 1210, "failed": 3},
		"versions": []any{
			object{"version": 2, "queue": "default", "first_step": "check", "on_cancel": "refund", "steps": steps, "updated_at": at(9 * minute), "edges": []any{edge("check", "charge"), edge("charge", "reserve"), edge("reserve", "reserve"), edge("reserve", "pack"), edge("reserve", "refund"), edge("pack", "ship"), edge("ship", "notify"), edge("refund", "notify"), edge("pack", "charge")}},
			object{"version": 1, "queue": "default", "first_step": "check", "steps": []any{"check", "charge", "ship"}, "updated_at": at(9 * day)},
		},
	}
}

func schedule(name, spec, text, zone string, paused bool) object {
	return object{"name": name, "definition": "report", "version": 1, "spec": spec, "text": text, "zone": zone, "paused": paused, "missed": "once", "next_at": at(-5 * time.Hour), "last_at": at(19 * time.Hour), "next": []string{at(-5 * time.Hour), at(-29 * time.Hour), at(-53 * time.Hour)}}
}

// unreadSchedule is one that the server cannot read.
func unreadSchedule() object {
	s := schedule("weekly", "", "", "", false)
	s["error"], s["next"] = "expression \"61 25 * * *\": minute 61 is not one of 0 to 59", []string{}
	return s
}

// wholeSchedule has what lists leave out.
func wholeSchedule() object {
	s := schedule("nightly-report", "30 2 * * *", "at 02:30", "Europe/Berlin", false)
	s["max_missed"], s["state"], s["start"] = 100, object{"order": "nightly", "amount": 5}, object{"queue": "mail", "priority": "low", "unique_key": "report"}
	return s
}

func hook(n int, name, status string) object {
	o := object{"id": id(200 + n), "namespace": "shop", "name": name, "status": status, "priority": 0, "attempts": n, "max_attempts": 5, "crashes": 0, "unit_id": id(300 + n), "created_at": at(9 * minute), "due_at": at(8 * minute), "last_attempt_at": at(2 * minute), "payload": object{"order": "4711", "customer": object{"name": "Ada", "tags": []any{"vip", nil, true, 1.5}}}, "retry": object{"kind": "exponential", "base": "1s", "max": "1h"}}
	if status == "failed" {
		o["error"], o["finished_at"] = "POST https://crm.example.com/events: 503 Service Unavailable", at(2*minute)
		o["timeline"] = timeline()
	}
	return o
}

// timeline has an attempt of every outcome.
func timeline() []any {
	return []any{
		object{"number": 1, "outcome": "failed", "began_at": at(9 * minute), "ended_at": at(8 * minute), "duration_ms": 1200, "worker": "web-1", "error": "503"},
		object{"number": 2, "outcome": "lost", "began_at": at(8 * minute), "ended_at": at(7 * minute), "duration_ms": 30_000, "worker": "web-2", "error": "process was lost while the hook ran"},
		object{"number": 3, "outcome": "cancelled", "began_at": at(6 * minute), "ended_at": at(6 * minute), "worker": "web-2", "error": "cancelled while it ran"},
		object{"outcome": "failed", "ended_at": at(5 * minute), "error": stack},
		object{"number": 4, "step": "pack", "outcome": "succeeded", "began_at": at(3 * minute), "ended_at": at(2 * minute), "duration_ms": 800, "worker": "web-1"},
		object{"number": 5, "outcome": "running", "began_at": at(2 * minute), "worker": "web-1"},
	}
}

func task(n int, kind, status string) object {
	return object{
		"id": fmt.Sprint(n), "type": kind, "status": status, "attempts": 3, "crashes": 0, "enqueued_at": at(6 * minute), "scheduled_at": at(5 * minute), "finished_at": at(minute), "worker": "web-1", "payload": object{"db_function": "comms.send_email_supervisor", "send_email_task_id": 4}, "error": "validation: to is empty",
		"facts": []any{object{"kind": "scheduled", "attempt": 1, "at": at(5 * minute)}, object{"kind": "failed", "attempt": 1, "at": at(4 * minute), "error": "mailbox full"}, object{"kind": "scheduled", "attempt": 2, "at": at(3 * minute)}, object{"kind": "succeeded", "attempt": 2, "at": at(2 * minute)}}, "timeline": timeline(), "errors": []any{object{"id": "1", "message": stack, "created_at": at(4 * minute)}},
	}
}

func alarm(name, kind string, in time.Duration) object {
	return object{"id": name, "type": kind, "kind": "alarm", "status": "scheduled", "due_at": at(-in), "every": "24h0m0s", "missed": "once", "attempts": 0, "max_attempts": 5, "created_at": at(day), "timeline": timeline(), "actor": object{"type": "subscription", "id": "ada"}, "payload": object{"text": "Your trial ends soon"}}
}

func failed(o object) object {
	o["status"], o["error"] = "failed", "dial tcp: connection refused"
	return o
}

func actor(name, status string) object {
	return object{
		"type": "subscription", "id": name, "status": status, "state": "active: billing.due, usage.normal", "version": 7, "created_at": at(40 * day), "updated_at": at(3 * minute), "next_timer_at": at(-70 * sec),
		"statechart": object{"name": "subscription", "version": 1}, "caller": object{"type": "client", "id": "ada"}, "input": object{"plan": "pro"}, "context": object{"public": object{"plan": "pro"}, "invoices": 2},
		"active":   []string{"subscription", "subscription.active", "subscription.active.billing", "subscription.active.billing.due", "subscription.active.usage", "subscription.active.usage.normal"},
		"children": []any{object{"id": "invoice", "status": "active", "state": "sending", "children": []any{object{"id": "pdf", "status": "done", "state": ""}}}},
		"timers":   []any{object{"key": "billing/due", "kind": "timer", "type": "after", "due_at": at(-70 * sec), "event": object{"type": "xstate.after.2592000000.subscription.active.billing.paid"}, "state": "subscription.active.billing.paid", "leads": []string{"subscription.active.billing.due"}}}, "events": []any{object{"type": "PAYMENT", "schema": object{"type": "object", "required": []string{"amount"}, "properties": object{"amount": object{"type": "number"}}}}, object{"type": "PAYMENT_FAILED"}, object{"type": "CANCEL"}},
	}
}

func actorLog() object {
	in := func(states ...string) []string {
		all := []string{"subscription"}
		for _, s := range states {
			all = append(all, "subscription."+s)
		}
		return all
	}
	trial := in("trial")
	paid := in("active", "active.billing", "active.billing.paid", "active.usage", "active.usage.normal")
	due := in("active", "active.billing", "active.billing.due", "active.usage", "active.usage.normal")
	entry := func(n int, ago time.Duration, event string, from, to []string) object {
		return object{"seq": n, "at": at(ago), "event": object{"type": event}, "caller": "client", "from": from, "to": to, "version": n}
	}
	return list(entry(1, 40*day, "xstate.init", nil, trial), entry(2, 35*day, "SUBSCRIBE", trial, paid), entry(3, 5*day, "after 30d", paid, due), entry(4, 4*day, "PAYMENT", due, paid), entry(5, 3*minute, "after 30d", paid, due))
}

func machineRow() object {
	return object{"name": "subscription", "version": 2, "versions": []int{2, 1}, "source": "http", "updated_at": at(50 * day), "actors": 1234, "definition": object{"id": "subscription", "initial": "trial"}, "events": []any{object{"type": "SUBSCRIBE"}, object{"type": "PAYMENT"}}, "input_schema": object{"type": "object", "properties": object{"plan": object{"enum": []string{"free", "pro"}}}}}
}

func outboxEntries() object {
	var rows []any
	for i := range 8 {
		stamp := fmt.Sprintf("0000000000000000%04x", 40+i)
		mutation := object{"stamp": stamp + "0001", "op": []string{"create", "update", "delete"}[i%3], "table": "orders", "id": id(600 + i), "values": object{"amount": 100 * i, "state": "paid"}}
		event := object{"stamp": stamp + "0000", "topic": "order.paid", "key": id(600 + i), "payload": object{"amount": 100 * i}}
		rows = append(rows, object{"stamp": stamp + "0000", "unit_id": id(500 + i), "created_at": at(time.Duration(80-i*9) * sec), "mutations": []any{mutation}, "events": []any{event}})
	}
	return object{"data": rows}
}

func node(host, status string, running int) object {
	return object{"id": id(700 + running), "host": host, "pid": 4000 + running, "status": status, "version": "v0.1.0", "started_at": at(3 * day), "seen_at": at(2 * sec), "running": running, "queues": []object{{"kind": "instance", "queue": "default", "running": running - 1}, {"kind": "hook", "queue": "shop", "running": 1}, {"kind": "task", "queue": "tasks", "running": 0}}, "roles": []string{"api", "worker", "ui"}, "work": []string{"fsm/default", "shop", "tasks"}}
}

func dead() object {
	group := func(kind, name, text string, n int) object {
		return object{"kind": kind, "name": name, "error": text, "example": stack, "count": n, "capped": n >= 1000, "first_at": at(3 * day), "last_at": at(2 * minute), "ids": []string{id(1), id(2)}}
	}
	return list(group("instances", "order", "charge card: provider answered 502", 1000), group("hooks", "notify-crm", "POST https://crm.example.com/events: 503 Service Unavailable", 214), group("tasks", "send_email", "validation: to is empty", 3))
}

func upcoming() object {
	var rows []any
	can := map[string][]string{"alarm": {"move", "skip", "fire"}, "timer": {"move", "skip", "fire"}, "schedule": {"fire"}}
	add := func(kind, name, why string, in time.Duration) {
		actions := object{}
		for _, action := range can[kind] {
			actions[action] = "/v1/alarms/" + name + "/" + action
		}
		rows = append(rows, object{"kind": kind, "id": fmt.Sprintf("%s-%d", name, len(rows)), "name": name, "why": why, "due_at": at(-in), "link": object{"kind": kind, "id": name}, "actions": actions})
	}
	add("timer", "subscription ada", "after 30d in billing.paid", 70*sec)
	add("hook", "notify-crm", "attempt 3 of 5 after an error", 3*minute)
	for i := range 9 {
		add("instance", "order", "retry of charge, attempt 2", time.Duration(5+i)*minute)
	}
	add("schedule", "sweep", "every 90 seconds", 26*minute)
	add("alarm", "trial-ends", "reminder, every 24h", 7*time.Hour)
	add("schedule", "nightly-report", "at 02:30 in Europe/Berlin", 11*time.Hour)
	add("task", "send_email", "scheduled", 15*time.Hour)
	add("alarm", "cleanup-1", "cleanup", 20*time.Hour)
	return object{"data": rows}
}

func overview() object {
	wave := func(base, swing, shift float64) []int {
		values := make([]int, 90)
		for i := range values {
			values[i] = int(math.Max(0, base+swing*math.Sin(float64(i)/9+shift)+swing/3*math.Sin(float64(i)*1.7+shift)))
		}
		return values
	}
	kind := func(name string, due, running, waiting, failed, perMinute int, oldest any) object {
		return object{"kind": name, "due": due, "running": running, "waiting": waiting, "failed": failed, "per_minute": perMinute, "oldest_due_at": oldest, "statuses": object{"ready": due, "running": running, "waiting": waiting, "failed": failed, "done": 1000, "pending": due, "processing": running, "completed": 1000, "active": waiting}, "capped": []string{"done", "completed"}}
	}
	return object{
		"now":     at(0),
		"kinds":   []any{kind("instances", 42, 12, 318, 3, 1260, at(2*sec)), kind("actors", 0, 1, 1234, 0, 88, nil), kind("hooks", 7, 4, 0, 214, 640, at(4*minute)), kind("tasks", 2, 1, 9, 3, 75, at(sec)), kind("alarms", 0, 0, 86, 0, 31, nil)},
		"cap":     1000,
		"horizon": object{"holder": "session", "name": "4711", "detail": "report, psql, 10.0.0.7, idle in transaction", "since": at(12 * minute), "dead_rows": 1440000},
		"unserved": []any{
			object{"kind": "instances", "why": "queue", "queue": "mail", "count": 1001, "oldest_due_at": at(7 * minute)},
			object{"kind": "instances", "why": "definition", "queue": "default", "name": "report", "version": 4, "count": 3, "oldest_due_at": at(9 * minute)},
			object{"kind": "instances", "why": "step", "queue": "default", "name": "order", "version": 2, "step": "wrap", "count": 1, "oldest_due_at": at(9 * minute)},
			object{"kind": "hooks", "why": "handler", "queue": "shop", "name": "notify-crm", "count": 7, "oldest_due_at": at(4 * minute)},
			object{"kind": "tasks", "why": "handler", "name": "send_fax", "count": 2, "oldest_due_at": at(5 * minute)},
			object{"kind": "schedules", "why": "definition", "name": "report", "version": 9, "schedule": "nightly-report", "count": 1, "oldest_due_at": at(-5 * time.Hour)},
		},
		"queues": []any{
			object{"name": "default", "kind": "instances", "due": 42, "running": 12, "concurrency": 100, "oldest_due_at": at(2 * sec), "spark": wave(20, 12, 0)[:40]},
			object{"name": "mail", "kind": "instances", "due": 0, "running": 0, "concurrency": 20, "spark": wave(4, 4, 2)[:40]},
		},
		"series": object{
			"from": at(15 * minute), "step": "10s", "throughput": object{"instances": wave(210, 60, 0), "hooks": wave(106, 40, 1), "tasks": wave(12, 6, 2)}, "failures": wave(1, 2.4, 3), "backlog": wave(30, 30, 4),
			"latency_ms": object{"p50": wave(14, 4, 0), "p95": wave(60, 22, 1), "p99": wave(140, 60, 2)},
		},
	}
}
