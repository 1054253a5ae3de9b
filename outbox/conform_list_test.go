package outbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func (Conformance) ADisabledOutboxIsEmptyAndCanBeListed(t *testing.T, db enginetest.Database) {
	off := options()
	off.Outbox = false
	eng := db.Open(t, off)
	create(t, eng, "ann", "bob")
	if entries := list(t, eng, outbox.Stamp{}); len(entries) != 0 {
		t.Errorf("there are %d entries", len(entries))
	}
	if n := db.Rows(t, "perdure", "outbox"); n != 0 || db.Counter(t) != 0 {
		t.Errorf("there are %d rows and the counter is at %d", n, db.Counter(t))
	}
	status, err := eng.Outbox().Status(t.Context())
	enginetest.NoError(t, err)
	if !status.Last.IsZero() || !status.PurgedThrough.IsZero() || len(status.Incarnations) != 0 {
		t.Errorf("the status is %+v", status)
	}
}

func (Conformance) TheFirstEntryIsAfterTheZeroStamp(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann", "bob")
	entries := list(t, eng, outbox.Stamp{})
	if len(entries) != 2 || entries[0].Stamp.String() != "000000000000000000010000" || entries[1].Stamp.String() != "000000000000000000020000" {
		t.Fatalf("the entries are %+v", entries)
	}
	status, err := eng.Outbox().Status(t.Context())
	enginetest.NoError(t, err)
	if status.Last != at(2) {
		t.Errorf("the last is %s", status.Last)
	}
}

func (Conformance) AUnitIsOneEntryWithItsMutationsInOrder(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann")
	var unit string
	commit(t, eng, func(tx *perdure.Tx) error {
		unit = tx.ID()
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "Bob"})
		_ = tx.CheckRow(ann)
		_ = tx.UpdateRow(ann, schema.Values{"points": 1})
		_ = tx.Update(users, "bob", schema.Values{"points": 2})
		_, _ = tx.Create(users, schema.Values{"id": "cid", "name": "Cid"})
		return tx.Delete(users, "cid")
	})
	entries := list(t, eng, at(1))
	if len(entries) != 1 || entries[0].Unit != unit || entries[0].Payload.Version != 1 || entries[0].Created.IsZero() {
		t.Fatalf("the entries are %+v", entries)
	}
	var got []string
	for i, m := range entries[0].Payload.Mutations {
		got = append(got, string(m.Op)+" "+m.ExternalID)
		if m.Stamp != entries[0].Stamp.At(uint16(i)) || m.Schema != "blog" || m.Namespace != "blog" || m.Table != "users" {
			t.Errorf("mutation %d is %+v", i, m)
		}
		if checked := i == 1; (m.CheckVersion != nil) != checked {
			t.Errorf("mutation %d has the checked version %v", i, m.CheckVersion)
		}
		if (m.Values != nil) != (m.Op == outbox.Create) || (m.Set != nil) != (m.Op == outbox.Update) {
			t.Errorf("mutation %d has values %v and set %v", i, m.Values, m.Set)
		}
	}
	if want := []string{"create bob", "update ann", "update bob", "create cid", "delete cid"}; !slices.Equal(got, want) {
		t.Errorf("the mutations are %q, want %q", got, want)
	}
	if m := entries[0].Payload.Mutations[1]; *m.CheckVersion != 0 || len(m.Set) != 1 {
		t.Errorf("the update is %+v", m)
	}
}

func (Conformance) UnitsThatChangeNothingOfTheTablesLeaveNoEntry(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann")
	for _, unit := range []func(*perdure.Tx) error{
		func(*perdure.Tx) error { return nil },
		func(tx *perdure.Tx) error { return tx.Check(users, "ann", 0) },
		func(tx *perdure.Tx) error {
			ann, err := tx.Get(users, "ann")
			if err != nil {
				return err
			}
			return tx.CheckRow(ann)
		},
		func(tx *perdure.Tx) error { _, err := tx.Find(users, nil); return err },
		func(tx *perdure.Tx) error { _, err := tx.Exec("delete from " + db.Table("blog", "posts")); return err },
	} {
		db.Unchanged(t, func() { commit(t, eng, unit) })
	}
}

func (Conformance) UnitsThatFailLeaveNoGap(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann")
	for _, unit := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "x"})
			_, err := tx.Create(users, schema.Values{"id": "ann", "name": "x"})
			return err
		},
		func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "x"})
			return tx.Check(users, "ann", 9)
		},
		func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"id": "x", "name": "x"})
			_, _ = tx.Get(users, "x")
			return tx.Delete(users, "nobody")
		},
	} {
		db.Unchanged(t, func() {
			if err := eng.Update(t.Context(), unit); err == nil {
				t.Error("the unit was committed")
			}
		})
	}
	create(t, eng, "bob")
	if entries := list(t, eng, outbox.Stamp{}); len(entries) != 2 || entries[1].Stamp != at(2) {
		t.Errorf("the entries are %+v", entries)
	}
}

func (Conformance) ListGoesOnAfterACursor(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c", "d", "e")
	for _, c := range []struct {
		after outbox.Stamp
		limit int
		want  string
	}{
		{outbox.Stamp{}, 0, "a b c d e"},
		{outbox.Stamp{}, 2, "a b"},
		{at(2), 2, "c d"},
		{at(2).At(7), 0, "c d e"}, // a cursor within an entry is behind it
		{at(4), 1000, "e"},
		{at(5), 0, ""},
		{at(5).At(65535), 0, ""},
	} {
		entries, err := eng.Outbox().List(t.Context(), c.after, c.limit)
		enginetest.NoError(t, err)
		if got := strings.Join(ids(entries), " "); got != c.want {
			t.Errorf("after %s up to %d: %s, want %s", c.after, c.limit, got, c.want)
		}
	}
	upper, err := outbox.ParseStamp(strings.ToUpper("00000000000000000003000a"))
	enginetest.NoError(t, err)
	if got := ids(list(t, eng, upper)); !slices.Equal(got, []string{"d", "e"}) {
		t.Errorf("after an upper-case cursor: %v", got)
	}
}

func (Conformance) AnEntryIsFoundByItsUnit(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "ann", "bob")
	entries := list(t, eng, outbox.Stamp{})
	found, err := eng.Outbox().Find(t.Context(), entries[1].Unit)
	enginetest.NoError(t, err)
	if found.Stamp != at(2) || found.Payload.Mutations[0].ExternalID != "bob" {
		t.Errorf("found %+v", found)
	}
	_, err = eng.Outbox().Find(t.Context(), "no such unit")
	enginetest.As[*fault.NotFound](t, err)
}

// TheUsersNamesOfOurParts: what the outbox marks in its JSON means nothing in a
// user's document.
func (Conformance) DocumentsThatLookLikeOurMarksComeBack(t *testing.T, db enginetest.Database) {
	docs := schema.NewTable("docs", schema.JSON("a"), schema.String("s"))
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("library", docs)}, Outbox: true})
	texts := []string{
		`{"__ref":"0.a"}`, `{"__ref": "1.a"}`, `{"json":{},"meta":{"values":{"mutations.0.values.a":["Date"]}}}`, `"2026-01-01T00:00:00.000Z"`,
		`"000000000000000000010000"`, `{"versionstamp":"000000000000000000010000"}`,
	}
	commit(t, eng, func(tx *perdure.Tx) error {
		for _, text := range texts {
			_, _ = tx.Create(docs, schema.Values{"a": raw(text), "s": text})
		}
		return nil
	})
	for i, m := range list(t, eng, outbox.Stamp{})[0].Payload.Mutations {
		if got := strings.ReplaceAll(string(m.Values["a"].(raw)), " ", ""); got != strings.ReplaceAll(texts[i], " ", "") || m.Values["s"] != texts[i] {
			t.Errorf("%s came back as %s and %s", texts[i], m.Values["a"], m.Values["s"])
		}
	}
	report, err := eng.Outbox().Verify(t.Context(), nil)
	enginetest.NoError(t, err)
	if len(report.Problems) > 0 {
		t.Errorf("problems: %q", report.Problems)
	}
}

// raw is a document as it is stored.
type raw = json.RawMessage
