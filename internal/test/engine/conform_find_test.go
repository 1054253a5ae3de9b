package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func (Conformance) FindNarrowsOrdersAndLimits(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		for i, v := range []any{3, nil, 1, 3, 2, nil} {
			_, _ = tx.Create(things, schema.Values{"id": fmt.Sprint(i), "int": v, "bool": i%2 == 0, "string": fmt.Sprint("s", i)})
		}
		return nil
	})
	for _, c := range []struct {
		name    string
		options *perdure.FindOptions
		want    string
	}{
		{"all, as created", nil, "0 1 2 3 4 5"},
		{"the newest", &perdure.FindOptions{Desc: true, Limit: 2}, "5 4"},
		{"null is first", &perdure.FindOptions{OrderBy: "int"}, "1 5 2 4 0 3"},
		{"null is last", &perdure.FindOptions{OrderBy: "int", Desc: true}, "3 0 4 2 5 1"},
		{"by id", &perdure.FindOptions{OrderBy: "id", Limit: 3}, "0 1 2"},
		{"a value", &perdure.FindOptions{Where: schema.Values{"int": 3}}, "0 3"},
		{"null", &perdure.FindOptions{Where: schema.Values{"int": nil}}, "1 5"},
		{"two", &perdure.FindOptions{Where: schema.Values{"int": 3, "bool": true}}, "0"},
		{"none", &perdure.FindOptions{Where: schema.Values{"string": "S0"}}, ""},
		{"a null document", &perdure.FindOptions{Where: schema.Values{"json": nil}, Limit: 1}, "0"},
	} {
		var ids []string
		for _, row := range find(t, eng, things, c.options) {
			ids = append(ids, row.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func (Conformance) ReplayMakesEqualTables(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_ = tx.UpdateRow(ann, schema.Values{"points": 4})
		_, err = tx.Create(posts, schema.Values{"id": "p1", "author": ann})
		return err
	})
	p1 := get(t, eng, posts, "p1")
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("author"), "editor": p1.Ref("author")})
		return tx.DeleteRow(p1)
	})
	mirror := openBlog(t, enginetest.New(t, db.Name))
	list := entries(t, eng)
	for _, entry := range list {
		enginetest.NoError(t, mirror.Replay(t.Context(), entry))
	}
	sound(t, mirror)
	for _, table := range blog.Tables() {
		want, got := find(t, eng, table, nil), find(t, mirror, table, nil)
		if len(got) != len(want) {
			t.Fatalf("%s has %d rows, want %d", table.Name(), len(got), len(want))
		}
		for i := range want {
			if got[i].ID != want[i].ID || got[i].Version != want[i].Version {
				t.Errorf("%s has %s at %d, want %s at %d", table.Name(), got[i].ID, got[i].Version, want[i].ID, want[i].Version)
			}
		}
	}
	enginetest.As[*fault.Duplicate](t, mirror.Replay(t.Context(), list[0])) // once only
	unknown := outbox.Entry{Payload: outbox.Payload{Mutations: []outbox.Mutation{{Op: outbox.Create, Schema: "other", Table: "users", ExternalID: "x"}}}}
	enginetest.As[*fault.Invalid](t, mirror.Replay(t.Context(), unknown))
}
