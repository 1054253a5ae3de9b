package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// room counts what is said, in public, and keeps it for the one who said it.
const room = `{"id":"room","initial":"on","context":{"public":{"said":0},"private":{"ada":{"text":""},"bob":{"text":""}}},"states":{
	"on":{"on":{"LEAVE":"off","SAY":{"actions":{"type":"xstate.assign","params":{"assignment":{
		"public":{"said":{"$expr":"context.public.said + 1"}},
		"private":{
			"ada":{"text":{"$expr":"event.caller.id == \"ada\" ? event.text : context.private.ada.text"}},
			"bob":{"text":{"$expr":"event.caller.id == \"bob\" ? event.text : context.private.bob.text"}}}}}}}}},
	"off":{}}}`

const lobby = "/v1/actors/room/lobby"

func openRoom(t *testing.T, db enginetest.Database) *fixture {
	t.Helper()
	f := open(t, db, nil)
	f.want(http.StatusOK, http.MethodPut, "/v1/statecharts/room", object{"definition": json.RawMessage(room)})
	f.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "room", "id": "lobby"})
	return f
}

// say sends what a caller says, and returns what the caller sees then.
func (f *fixture) say(caller, text string) object {
	f.Helper()
	return f.want(http.StatusOK, http.MethodPost, lobby+"/events?caller=client:"+caller, object{"type": "SAY", "text": text})
}

// seen is what a caller sees.
func (f *fixture) seen(caller string) object {
	f.Helper()
	return f.want(http.StatusOK, http.MethodGet, lobby+"/snapshot?caller=client:"+caller, nil)
}

func decode(t testing.TB, text string) object {
	t.Helper()
	var o object
	enginetest.NoError(t, json.Unmarshal([]byte(text), &o))
	return o
}

// apply changes a snapshot as a patch says, which only names members of objects.
func apply(t testing.TB, snapshot, patch object) {
	t.Helper()
	if patch["from"] != snapshot["version"] {
		t.Fatalf("a patch from version %v follows version %v", patch["from"], snapshot["version"])
	}
	for _, op := range patch["patch"].([]any) {
		change := object(op.(map[string]any))
		keys := strings.Split(change.text("path"), "/")[1:]
		at := map[string]any(snapshot)
		for _, key := range keys[:len(keys)-1] {
			at = at[key].(map[string]any)
		}
		at[keys[len(keys)-1]] = change["value"]
	}
}

func (Flows) Case57NobodySeesWhatIsPrivateOfAnother(t *testing.T, db enginetest.Database) {
	f := openRoom(t, db)
	s := f.stream(lobby + "/stream?caller=client:bob")
	defer func() { _ = s.close() }()
	told := []string{s.next("snapshot").data}
	f.say("ada", "secret of ada")
	told = append(told, s.next("patch").data, fmt.Sprint(f.seen("bob")), fmt.Sprint(f.say("bob", "hello")))
	for _, text := range told {
		if strings.Contains(text, "secret of ada") {
			t.Errorf("bob is told %s", text)
		}
	}
	if own := fmt.Sprint(f.seen("ada")["private"]); own != "map[text:secret of ada]" {
		t.Errorf("ada sees %s", own)
	}
}

func (Flows) Case58AReaderThatComesBackGetsOnlyWhatItLacks(t *testing.T, db enginetest.Database) {
	f := openRoom(t, db)
	old := f.seen("ada")
	f.say("ada", "1")
	now := f.seen("ada")
	back := func(version any) *reader {
		s := f.stream(lobby+"/stream?caller=client:ada", "Last-Event-ID", fmt.Sprint(version))
		t.Cleanup(func() { _ = s.close() })
		return s
	}
	apply(t, old, decode(t, back(old["version"]).next("").data))
	if !reflect.DeepEqual(old, now) {
		t.Errorf("after the patch it has %v, want %v", old, now)
	}
	for _, unknown := range []string{"99", "none"} {
		if first := back(unknown).next(""); first.name != "snapshot" || !reflect.DeepEqual(decode(t, first.data), now) {
			t.Errorf("after version %s it gets %+v", unknown, first)
		}
	}
	current := back(now["version"]) // lacks nothing: the first that it hears is new
	f.say("ada", "2")
	apply(t, now, decode(t, current.next("").data))
	if !reflect.DeepEqual(now, f.seen("ada")) {
		t.Errorf("it has %v", now)
	}
}

func (Flows) Case59TheLastPatchAfterManyEventsLeadsToTheState(t *testing.T, db enginetest.Database) {
	f := openRoom(t, db)
	s := f.stream(lobby + "/stream?caller=client:ada")
	defer func() { _ = s.close() }()
	seen := decode(t, s.next("snapshot").data)
	for i := range 200 * enginetest.Soak() {
		f.say("ada", fmt.Sprint(i))
	}
	last := f.seen("ada")
	for seen["version"] != last["version"] {
		apply(t, seen, decode(t, s.next("patch").data))
	}
	if !reflect.DeepEqual(seen, last) {
		t.Errorf("the patches lead to %v, want %v", seen, last)
	}
}

func (Flows) Case61AWaitForAStateEndsWithItOrInTime(t *testing.T, db enginetest.Database) {
	f := openRoom(t, db)
	wait := lobby + "/snapshot?wait_for_state="
	if s := f.want(http.StatusOK, http.MethodGet, wait+"on&timeout=5m", nil); s.text("value") != "on" {
		t.Errorf("a wait for what is there: %v", s)
	}
	if s := f.want(http.StatusOK, http.MethodGet, wait+"off&timeout=1ms", nil); s.text("value") != "on" {
		t.Errorf("a wait that ends in time: %v", s)
	}
	left := make(chan answer, 1)
	go func() {
		res, err := http.Get(f.url + wait + "off&timeout=5m")
		if err != nil {
			left <- answer{body: []byte(err.Error())}
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		left <- answer{status: res.StatusCode, body: body}
	}()
	f.want(http.StatusOK, http.MethodPost, lobby+"/events", object{"type": "LEAVE"})
	if a := <-left; a.status != http.StatusOK || decode(t, string(a.body)).text("value") != "off" {
		t.Errorf("a wait for what comes: %d: %s", a.status, a.body)
	}
	for _, bad := range []string{"off&timeout=-1s", "off&timeout=10m", "off&timeout=soon"} {
		if a := f.do(http.MethodGet, wait+bad, nil); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d: %s", bad, a.status, a.body)
		}
	}
}
