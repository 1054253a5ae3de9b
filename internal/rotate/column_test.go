package rotate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// speaker has a log, and a checkpoint after every second event.
var speaker = []byte(`{"on": {"SAY": {"actions": {"type": "xstate.log", "params": {"value": "planted-word"}}}}}`)

var request = store.RequestKey{Principal: "ada", Key: "1"}

// fill stores a value in every encrypted column.
func fill(t *testing.T, db enginetest.Database, clock *perduretest.Clock, keys string) {
	t.Helper()
	p := newProcess(t, db, clock, keys)
	_, id := p.plant(t)
	p.drain(t)
	p.send(t, id)
	waiting, err := fsm.Start(t.Context(), p.eng, p.order, "planted-state", nil)
	enginetest.NoError(t, err)
	p.send(t, waiting.ID)
	ends := fsm.Define("ends", 1, nil, fsm.Step("a", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
		run.State = "planted-end"
		return run.Done("planted-result"), nil
	}, nil))
	recorded := flow.Define("recorded", 1, func(run *flow.Run, _ string) (string, error) {
		return flow.Step(run, "a", func(context.Context) (string, error) { return "planted-record", nil })
	})
	enginetest.NoError(t, p.machines.Register(ends, recorded))
	_, err = fsm.Start(t.Context(), p.eng, ends, "planted-state", nil)
	enginetest.NoError(t, err)
	_, err = flow.Start(t.Context(), p.eng, recorded, "planted-state", nil)
	enginetest.NoError(t, err)
	p.drain(t)
	last, err := fsm.Start(t.Context(), p.eng, p.order, "planted-state", nil)
	enginetest.NoError(t, err)
	p.send(t, last.ID)
	alarms, err := alarm.New(p.eng, nil)
	enginetest.NoError(t, err)
	_, err = alarm.Handle(alarms, "a", func(context.Context, string) error { return nil }, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, alarms.Schedule(t.Context(), alarm.Of("order", "1", "x"), "a", "planted-alarm", &alarm.ScheduleOptions{At: clock.Now().Add(time.Hour)}))
	_, actors, _ := study(t, db, clock, keys)
	write(t, actors)
	enginetest.NoError(t, actors.Register("speaker", speaker, &actor.TypeOptions{LogRetention: 2}))
	spoken := actor.Ref{Type: "speaker", ID: "1"}
	_, err = actors.Spawn(t.Context(), spoken, author, nil, nil)
	enginetest.NoError(t, err)
	for range 4 {
		_, err = actors.Send(t.Context(), spoken, author, statechart.Event{Type: "SAY"}, nil)
		enginetest.NoError(t, err)
	}

	rt := host.Of(p.eng)
	enginetest.NoError(t, unit.Transact(t.Context(), rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		return tx.Run(t.Context(), rt.Store.EnterRequest(request, "f", rt.Now(), func(bool) error { return nil }), rt.Store.AnswerRequest(request, `{"planted":"response"}`))
	}))
}

// values returns the text of every value in the database.
func values(t *testing.T, db enginetest.Database) string {
	t.Helper()
	raw := db.SQL(t)
	var all strings.Builder
	for table := range db.Contents(t) {
		rows, err := raw.QueryContext(t.Context(), "select * from "+table)
		enginetest.NoError(t, err)
		columns, err := rows.Columns()
		enginetest.NoError(t, err)
		cells, to := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range cells {
			to[i] = &cells[i]
		}
		for rows.Next() {
			enginetest.NoError(t, rows.Scan(to...))
			for _, cell := range cells {
				all.Write(cell)
				all.WriteByte('\n')
			}
		}
		enginetest.NoError(t, rows.Err())
		enginetest.NoError(t, rows.Close())
	}
	return all.String()
}

// Everything is encrypted with one key, then with another one, and the first is
// removed: every value can be read, and the first key is nowhere.
func (Conformance) EveryColumnIsEncryptedAgain(t *testing.T, db enginetest.Database) {
	clock := newClock()
	fill(t, db, clock, keyA)
	both := newProcess(t, db, clock, keyB+","+keyA)
	before, err := rotate.Pending(t.Context(), both.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	if columns := host.Of(both.eng).Store.SealedColumns(); len(before) != len(columns) {
		t.Errorf("%d of %d columns were counted", len(before), len(columns))
	}
	for _, p := range before {
		if p.Seen == 0 || p.Resealed != p.Seen || p.Foreign != 0 {
			t.Errorf("to encrypt: %+v", p)
		}
	}
	if !strings.Contains(values(t, db), `"key":"a"`) {
		t.Fatal("the first key is not found")
	}
	_, err = rotate.Run(t.Context(), both.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	for line := range strings.SplitSeq(values(t, db), "\n") {
		if strings.Contains(line, `"key":"a"`) || strings.Contains(line, "planted") {
			t.Errorf("left: %s", line)
		}
	}
	only := newProcess(t, db, clock, keyB)
	after, err := rotate.Pending(t.Context(), only.eng, func(rotate.Progress) {})
	enginetest.NoError(t, err)
	for i, p := range after {
		if p.Seen != before[i].Seen || p.Resealed != 0 || p.Foreign != 0 {
			t.Errorf("with the second key: %+v, %+v before", p, before[i])
		}
	}
	var response string
	rt := host.Of(only.eng)
	enginetest.NoError(t, unit.Transact(t.Context(), rt.DB, sqldb.Read, func(tx sqldb.Tx) error {
		return tx.Run(t.Context(), rt.Store.GetRequest(request, func(_, r string) { response = r }))
	}))
	if !json.Valid([]byte(response)) || !strings.Contains(response, "planted") {
		t.Errorf("the response is %s", response)
	}
}

// A column that only looks encrypted is not taken for one: it is run everywhere.
func (Conformance) PayloadsThatLookEncryptedAreRun(t *testing.T, db enginetest.Database) {
	clock := newClock()
	owner := newProcess(t, db, clock, keyA)
	owner.plant(t)
	plain := newProcess(t, db, clock, "")
	plain.drain(t) // it has met a key that it does not have
	payloads := []string{`{"$sealed":"v1","key":"a","data":"AAAA"}`, `{"$sealed":"v1","key":"z","data":"AAAA","more":1}`, `{"$sealed":"v1","key":1}`}
	enginetest.NoError(t, plain.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		for _, payload := range payloads {
			if _, err := plain.raw.TriggerIn(tx, json.RawMessage(payload), nil); err != nil {
				return err
			}
		}
		return nil
	}))
	ran := plain.drain(t)
	for _, payload := range payloads {
		if !strings.Contains(ran, payload) {
			t.Errorf("%s was not run: %s", payload, ran)
		}
	}
}
