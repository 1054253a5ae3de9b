package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// stored returns the text of an outbox entry as it is in the database.
func stored(t testing.TB, db enginetest.Database, unit string) (payload string, refs string) {
	t.Helper()
	from := " from " + db.Table("perdure", "outbox") + " where unit_id = ?"
	cast := map[string]string{enginetest.Postgres: "::text"}[db.Name]
	return db.Text(t, "select payload"+cast+from, unit), db.Text(t, "select coalesce(ref_map"+cast+", 'none')"+from, unit)
}

func (Conformance) AReferenceCanBeGivenInFourWays(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	var units [4]string
	update(t, eng, func(tx *perdure.Tx) error { // by external id, of a row of the same unit too
		units[0] = tx.ID()
		bob, _ := tx.Create(users, schema.Values{"id": "bob", "name": "Bob"})
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann", "editor": bob})
		return err
	})
	update(t, eng, func(tx *perdure.Tx) error { // by a row, and null
		units[1] = tx.ID()
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_, err = tx.Create(posts, schema.Values{"id": "p2", "author": ann, "editor": nil})
		return err
	})
	update(t, eng, func(tx *perdure.Tx) error { // by reference
		units[2] = tx.ID()
		p1, err := tx.Get(posts, "p1")
		if err != nil {
			return err
		}
		_ = tx.Check(users, "ann", 0) // not emitted, so not counted
		_, _ = tx.Create(users, schema.Values{"id": "cid", "name": "Cid"})
		_, err = tx.Create(posts, schema.Values{"id": "p3", "author": p1.Ref("editor"), "editor": p1.Ref("author")})
		return err
	})
	update(t, eng, func(tx *perdure.Tx) error {
		units[3] = tx.ID()
		p1, err := tx.Get(posts, "p1")
		if err != nil {
			return err
		}
		return tx.Update(posts, "p2", schema.Values{"editor": p1.Ref("editor")})
	})
	for i, want := range []struct{ in, refs string }{
		{`"author":"ann"`, "none"},
		{`"editor":null`, "none"},
		{`"author":{"__ref":"1.author"}`, `{"1.author":"bob","1.editor":"ann"}`},
		{`"set":{"editor":{"__ref":"0.editor"}}`, `{"0.editor":"bob"}`},
	} {
		payload, refs := stored(t, db, units[i])
		if !strings.Contains(strings.ReplaceAll(payload, " ", ""), want.in) || strings.ReplaceAll(refs, " ", "") != want.refs {
			t.Errorf("unit %d: payload %s, references %s; want %s and %s", i, payload, refs, want.in, want.refs)
		}
	}
	entry, err := eng.Outbox().Find(t.Context(), units[2])
	enginetest.NoError(t, err)
	if v := entry.Payload.Mutations[1].Values; v["author"] != "bob" || v["editor"] != "ann" {
		t.Errorf("resolved values are %v", v)
	}
	p2, p3 := get(t, eng, posts, "p2"), get(t, eng, posts, "p3")
	ann, bob := get(t, eng, users, "ann"), get(t, eng, users, "bob")
	if p2.Ref("author").Internal() != ann.Internal() || p2.Ref("editor").Internal() != bob.Internal() ||
		p3.Ref("author").Internal() != bob.Internal() {
		t.Error("the stored references point elsewhere")
	}
	sound(t, eng)
}

func (Conformance) FindByReference(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	createUser(t, eng, "bob")
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(posts, schema.Values{"id": "p1", "author": "ann"})
		_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": "bob", "editor": "ann"})
		_, err := tx.Create(posts, schema.Values{"id": "p3", "author": "ann", "editor": "bob"})
		return err
	})
	ann := get(t, eng, users, "ann")
	p1 := get(t, eng, posts, "p1")
	for _, c := range []struct {
		where schema.Values
		want  string
	}{
		{schema.Values{"author": "ann"}, "p1 p3"},
		{schema.Values{"author": ann}, "p1 p3"},
		{schema.Values{"author": p1.Ref("author")}, "p1 p3"},
		{schema.Values{"editor": nil}, "p1"},
		{schema.Values{"author": "ann", "editor": "bob"}, "p3"},
		{schema.Values{"author": "nobody"}, ""},
		{schema.Values{"id": "p2"}, "p2"},
	} {
		var ids []string
		for _, row := range find(t, eng, posts, &perdure.FindOptions{Where: c.where}) {
			ids = append(ids, row.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("where %v: %s, want %s", c.where, got, c.want)
		}
	}
}

func (Conformance) AReferenceToNothingIsNotFound(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann"})
		return err
	})
	for _, change := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error {
			_, err := tx.Create(posts, schema.Values{"author": "nobody"})
			return err
		},
		func(tx *perdure.Tx) error { return tx.Update(posts, "p1", schema.Values{"editor": "nobody"}) },
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, _ = tx.Create(users, schema.Values{"name": "beside"})
				return change(tx)
			})
			if missing := enginetest.As[*fault.NotFound](t, err); missing.Kind != "users" || missing.ID != "nobody" {
				t.Errorf("missing is %+v", missing)
			}
		})
	}
}

func (Conformance) AReferencedRowCannotBeDeleted(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann"})
		return err
	})
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error { return tx.Delete(users, "ann") })
		if restricted := enginetest.As[*fault.Restricted](t, err); restricted.Constraint == "" {
			t.Error("the error names no constraint")
		}
	})
	update(t, eng, func(tx *perdure.Tx) error { // in the right order it can
		_ = tx.Delete(posts, "p1")
		return tx.Delete(users, "ann")
	})
	sound(t, eng)
}

// AReferenceToARowDeletedInTheSameUnitFailsWhole, whichever of the two comes
// first.
func (Conformance) AReferenceToARowDeletedInTheSameUnitFailsWhole(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	createUser(t, eng, "bob")
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann", "editor": "bob"})
		return err
	})
	p1 := get(t, eng, posts, "p1")
	refer := func(tx *perdure.Tx) {
		_ = tx.Update(posts, "p1", schema.Values{"editor": nil})
		_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("editor")})
	}
	for _, unit := range []func(*perdure.Tx){
		func(tx *perdure.Tx) { refer(tx); _ = tx.Delete(users, "bob") },
		func(tx *perdure.Tx) {
			_ = tx.Update(posts, "p1", schema.Values{"editor": nil})
			_ = tx.Delete(users, "bob")
			_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("editor")})
		},
		func(tx *perdure.Tx) {
			_ = tx.Update(posts, "p1", schema.Values{"editor": nil})
			_ = tx.Delete(users, "bob")
			_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": "bob"})
		},
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error { unit(tx); return nil })
			if err == nil {
				t.Fatal("the unit was committed")
			}
		})
	}
	sound(t, eng)
}

func (Conformance) AReferenceOfAnotherTableIsRefused(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann"})
		return err
	})
	p1 := get(t, eng, posts, "p1")
	for _, wrong := range []any{p1, schema.NewReference(posts, p1.Internal()), schema.NewReference(nil, 1), 7, ""} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Create(posts, schema.Values{"author": wrong})
				return err
			})
			enginetest.As[*fault.Invalid](t, err)
		})
	}
	db.Unchanged(t, func() { // a reference that nobody gave out
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(posts, schema.Values{"author": schema.NewReference(users, 1<<40)})
			return err
		})
		if err == nil {
			t.Error("a reference to no row was committed")
		}
	})
}

// TwoSchemasWithTheSameInternalIDsResolveRight: internal ids begin at 1 in
// every table.
func (Conformance) TwoSchemasWithTheSameInternalIDsResolveRight(t *testing.T, db enginetest.Database) {
	people := schema.NewTable("people", schema.String("name"))
	notes := schema.NewTable("notes", schema.Ref("owner", people))
	first := schema.New("first", people, notes)
	people2 := schema.NewTable("people", schema.String("name"))
	notes2 := schema.NewTable("notes", schema.Ref("owner", people2), schema.Ref("foreign", people))
	second := schema.New("second", people2, notes2)
	// The order of the schemas is not the order of their references.
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{second, first}, Outbox: true})
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(people, schema.Values{"id": "first person", "name": "x"})
		_, _ = tx.Create(people2, schema.Values{"id": "second person", "name": "x"})
		_, err := tx.Create(notes2, schema.Values{"id": "n1", "owner": "second person", "foreign": "first person"})
		return err
	})
	n1 := get(t, eng, notes2, "n1")
	if n1.Ref("owner").Internal() != n1.Ref("foreign").Internal() {
		t.Fatal("the internal ids differ: the test does not test what it should")
	}
	var unit string
	update(t, eng, func(tx *perdure.Tx) error {
		unit = tx.ID()
		_, _ = tx.Create(notes, schema.Values{"owner": n1.Ref("foreign")})
		_, err := tx.Create(notes2, schema.Values{"owner": n1.Ref("owner"), "foreign": n1.Ref("foreign")})
		return err
	})
	entry, err := eng.Outbox().Find(t.Context(), unit)
	enginetest.NoError(t, err)
	m := entry.Payload.Mutations
	if m[0].Values["owner"] != "first person" || m[1].Values["owner"] != "second person" || m[1].Values["foreign"] != "first person" {
		t.Errorf("resolved: %v and %v", m[0].Values, m[1].Values)
	}
	if m[0].Schema != "first" || m[1].Schema != "second" || m[1].Namespace != "second" {
		t.Errorf("schemas are %q and %q", m[0].Schema, m[1].Schema)
	}
	sound(t, eng)
}

// InternalIDsNeverAppear: the counters of the tables are moved to numbers that
// would stand out.
func (Conformance) InternalIDsNeverAppear(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	const mark = 7_700_770_077
	switch table := db.Table("blog", "users"); db.Name {
	case enginetest.SQLite:
		db.Exec(t, "insert into sqlite_sequence (name, seq) values ('blog_users', ?)", mark)
	case enginetest.Postgres:
		db.Exec(t, fmt.Sprintf("alter table %s alter column _id restart with %d", table, mark+1))
	case enginetest.MySQL:
		db.Exec(t, fmt.Sprintf("alter table %s auto_increment = %d", table, mark+1))
	}
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(posts, schema.Values{"id": "p1", "author": "ann"})
		return err
	})
	p1 := get(t, eng, posts, "p1")
	if p1.Ref("author").Internal() != mark+1 {
		t.Fatalf("the internal id is %d", p1.Ref("author").Internal())
	}
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(posts, schema.Values{"author": p1.Ref("author"), "editor": get(t, eng, users, "ann")})
		return tx.UpdateRow(p1, schema.Values{"editor": p1.Ref("author")})
	})
	for _, entry := range entries(t, eng) {
		payload, refs := stored(t, db, entry.Unit)
		if strings.Contains(payload+refs, "77007700") || strings.Contains(payload, "_id") {
			t.Errorf("an internal id is in %s with %s", payload, refs)
		}
	}
	sound(t, eng)
}
