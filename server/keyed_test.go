package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// request is a POST that has an effect.
type request struct {
	path string
	body any
}

// keyed makes, for every route that takes an Idempotency-Key, something to act on and
// a request that changes it. The server has no workers: nothing else changes.
var keyed = map[string]func(f *fixture) request{
	"start-instance": func(*fixture) request { return request{"/v1/instances", object{"definition": "order"}} },
	"start-instances": func(*fixture) request {
		return request{"/v1/instances/batch", object{"instances": []object{{"definition": "order"}}}}
	},
	"signal-instance": func(f *fixture) request {
		return request{"/v1/instances/" + f.start(nil) + "/signals", object{"name": "approved"}}
	},
	"cancel-instance": func(f *fixture) request { return request{"/v1/instances/" + f.start(nil) + "/cancel", nil} },
	"terminate-instance": func(f *fixture) request {
		return request{"/v1/instances/" + f.start(nil) + "/terminate", nil}
	},
	"retry-instance": func(f *fixture) request {
		return request{f.done("/v1/instances/"+f.start(nil), "/cancel") + "/retry", nil}
	},
	"run-instance": func(f *fixture) request {
		return request{"/v1/instances/" + f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "order", "delay": "1h"}).text("id") + "/run", nil}
	},
	"act-on-instances": func(f *fixture) request { return act("instances", "cancel", f.start(nil), f.start(nil)) },

	"fire-schedule":   func(f *fixture) request { return request{f.schedule() + "/fire", nil} },
	"pause-schedule":  func(f *fixture) request { return request{f.schedule() + "/pause", nil} },
	"resume-schedule": func(f *fixture) request { return request{f.done(f.schedule(), "/pause") + "/resume", nil} },

	"trigger-hook": func(*fixture) request { return request{"/v1/hooks", object{"namespace": "shop", "name": "mail"}} },
	"cancel-hook":  func(f *fixture) request { return request{"/v1/hooks/" + f.hook() + "/cancel", nil} },
	"retry-hook":   func(f *fixture) request { return request{f.done("/v1/hooks/"+f.hook(), "/cancel") + "/retry", nil} },
	"run-hook":     func(f *fixture) request { return request{"/v1/hooks/" + f.hook() + "/run", nil} },
	"replay-hook":  func(f *fixture) request { return request{"/v1/hooks/" + f.hook() + "/replay", nil} },
	"act-on-hooks": func(f *fixture) request { return act("hooks", "cancel", f.hook(), f.hook()) },
	"retry-dead": func(f *fixture) request {
		id := f.hook()
		f.done("/v1/hooks/"+id, "/cancel")
		return request{"/v1/dead/retry", object{"kind": "hooks", "ids": []string{id}}}
	},

	"start-process": func(*fixture) request { return request{"/v1/processes/email", object{"payload": mail}} },
	"enqueue-task":  func(*fixture) request { return request{"/v1/tasks", object{"type": "email", "payload": object{}}} },
	"cancel-task":   func(f *fixture) request { return request{"/v1/tasks/" + f.task() + "/cancel", nil} },
	"retry-task":    func(f *fixture) request { return request{f.done("/v1/tasks/"+f.task(), "/cancel") + "/retry", nil} },
	"run-task": func(f *fixture) request {
		return request{"/v1/tasks/" + f.want(http.StatusCreated, http.MethodPost, "/v1/tasks", object{"type": "email", "payload": object{}, "delay": "1h"}).text("id") + "/run", nil}
	},
	"act-on-tasks": func(f *fixture) request { return act("tasks", "cancel", f.task(), f.task()) },

	"move-alarm":    func(f *fixture) request { return request{f.alarm() + "/move", object{"at": "2100-01-01T00:00:00Z"}} },
	"skip-alarm":    func(f *fixture) request { return request{f.alarm() + "/skip", nil} },
	"fire-alarm":    func(f *fixture) request { return request{f.alarm() + "/fire", nil} },
	"retry-alarm":   func(f *fixture) request { return request{f.deadAlarm() + "/retry", nil} },
	"act-on-alarms": func(f *fixture) request { return act("alarms", "fire", strings.TrimPrefix(f.alarm(), "/v1/alarms/")) },

	"spawn-actor":   func(f *fixture) request { f.door(); return request{"/v1/actors", object{"type": "door", "id": "new"}} },
	"send-event":    func(f *fixture) request { return request{f.door() + "/events", object{"type": "CLOSE"}} },
	"stop-actor":    func(f *fixture) request { return request{f.door() + "/stop", nil} },
	"resume-actor":  func(f *fixture) request { return request{f.stuckDoor() + "/resume", nil} },
	"reset-actor":   func(f *fixture) request { return request{f.stuckDoor() + "/reset", object{"step": 1}} },
	"move-timer":    func(f *fixture) request { return request{f.timer() + "/move", object{"at": "2100-01-01T00:00:00Z"}} },
	"skip-timer":    func(f *fixture) request { return request{f.timer() + "/skip", nil} },
	"fire-timer":    func(f *fixture) request { return request{f.timer() + "/fire", nil} },
	"act-on-actors": func(f *fixture) request { return act("actors", "stop", strings.TrimPrefix(f.door(), "/v1/actors/")) },

	"drain-node": func(f *fixture) request { return request{"/v1/nodes/" + f.node() + "/drain", nil} },
}

var mail = object{"from": "shop@example.com", "to": "ada@example.com", "subject": "Hi", "text": "Hello"}

// act asks for an action on many things.
func act(kind, action string, ids ...string) request {
	return request{"/v1/" + kind + "/actions", object{"action": action, "ids": ids}}
}

// done posts to a thing and returns its path.
func (f *fixture) done(path, action string) string {
	f.Helper()
	f.want(http.StatusOK, http.MethodPost, path+action, nil)
	return path
}

// new returns a name that nothing has.
func (f *fixture) new() string { return host.Of(f.eng).NewID() }

func (f *fixture) schedule() string {
	f.Helper()
	path := "/v1/schedules/" + f.new()
	f.want(http.StatusOK, http.MethodPut, path, object{"definition": "order", "spec": "30 2 * * *"})
	return path
}

func (f *fixture) hook() string {
	f.Helper()
	return f.want(http.StatusCreated, http.MethodPost, "/v1/hooks", object{"namespace": "shop", "name": "mail", "delay": "1h"}).text("id")
}

func (f *fixture) task() string {
	f.Helper()
	return f.want(http.StatusCreated, http.MethodPost, "/v1/tasks", object{"type": "email", "payload": object{}}).text("id")
}

func (f *fixture) alarm() string {
	f.Helper()
	path := "/v1/alarms/" + f.new()
	f.want(http.StatusOK, http.MethodPut, path, object{"type": "remind", "every": "24h"})
	return path
}

func (f *fixture) deadAlarm() string {
	f.Helper()
	path := f.alarm()
	tour{fixture: f}.kill(strings.TrimPrefix(path, "/v1/alarms/"))
	return path
}

// door returns the path of an actor that is open, with a delay.
func (f *fixture) door() string {
	f.Helper()
	f.want(http.StatusOK, http.MethodPut, "/v1/statecharts/door", object{"definition": json.RawMessage(door)})
	id := f.new()
	f.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "door", "id": id})
	f.want(http.StatusOK, http.MethodPost, "/v1/actors/door/"+id+"/events", object{"type": "OPEN"})
	return "/v1/actors/door/" + id
}

func (f *fixture) stuckDoor() string {
	f.Helper()
	path := f.door()
	id := strings.TrimPrefix(path, "/v1/actors/door/")
	f.db.Exec(f, "update "+f.db.Table("perdure", "actors")+" set status = 'quarantined', reason = 'by hand' where id = ?", id)
	return path
}

func (f *fixture) timer() string {
	f.Helper()
	path := f.door() + "/timers"
	return path + "/" + url.PathEscape(f.want(http.StatusOK, http.MethodGet, path, nil).list()[0].text("key"))
}

// node returns the id of a process that is said to run.
func (f *fixture) node() string {
	f.Helper()
	now := "now()"
	if f.db.Name == enginetest.SQLite {
		now = "1"
	}
	id := f.new()
	f.db.Exec(f, "insert into "+f.db.Table("perdure", "nodes")+" (id, host, pid, version, roles, work, running, started_at, seen_at) values (?, 'h', 1, 'v', '[]', '[]', '[]', "+now+", "+now+")", id)
	return id
}
