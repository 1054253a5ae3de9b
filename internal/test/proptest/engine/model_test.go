package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/fault"
)

// The model of the property test: what the blog's tables must be after a list of
// units, and which kind of error each unit must have.

// op is one operation of a unit, on one of a few rows so that they meet.
type op struct {
	Kind    string
	Row     string // of posts if it begins with p, else of users
	Other   string // the author, or the post whose author is copied
	Name    string
	Version int64
	Checked bool // whether an update or a delete is conditional on Version
}

// unit is a list of operations.
type unit struct {
	Ops []op
	// ReadAfter is the operation after which the unit reads, which opens its
	// transaction; -1 for never.
	ReadAfter int
	// Fails says that the function returns an error of its own at the end.
	Fails bool
}

func userID() *rapid.Generator[string] { return rapid.SampledFrom([]string{"u0", "u1", "u2", "u3"}) }

func postID() *rapid.Generator[string] { return rapid.SampledFrom([]string{"p0", "p1", "p2", "p3"}) }

func opGen() *rapid.Generator[op] {
	kinds := []string{"create", "create", "create", "createLike", "update", "update", "delete", "check"}
	return rapid.Custom(func(t *rapid.T) op {
		o := op{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		if o.Kind == "createLike" || rapid.Bool().Draw(t, "post") {
			o.Row = postID().Draw(t, "row")
		} else {
			o.Row = userID().Draw(t, "row")
		}
		o.Other = userID().Draw(t, "other")
		if o.Kind == "createLike" {
			o.Other = postID().Draw(t, "like")
		}
		o.Name = rapid.SampledFrom([]string{"a", "b", "c", "d", "e ", "E", "🙂"}).Draw(t, "name")
		o.Version = int64(rapid.IntRange(0, 2).Draw(t, "version"))
		o.Checked = rapid.Bool().Draw(t, "checked")
		return o
	})
}

func unitsGen() *rapid.Generator[[]unit] {
	one := rapid.Custom(func(t *rapid.T) unit {
		u := unit{Ops: rapid.SliceOfN(opGen(), 1, 5).Draw(t, "ops")}
		u.ReadAfter = rapid.IntRange(-4, len(u.Ops)-1).Draw(t, "readAfter")
		u.Fails = rapid.IntRange(0, 9).Draw(t, "fails") == 0
		return u
	})
	return rapid.SliceOfN(one, 1, 20)
}

// modelRow is a row of either table.
type modelRow struct {
	Name    string // of a user, or the body of a post
	Author  string
	Version int64
}

// model maps ids to rows.
type model map[string]modelRow

// apply returns the model after the unit, or the kind of error it must have.
func (m model) apply(u unit) (model, error) {
	next := maps.Clone(m)
	for _, o := range u.Ops {
		if err := next.one(o); err != nil {
			return m, err
		}
	}
	if u.Fails {
		return m, errMine
	}
	return next, nil
}

func (m model) one(o op) error {
	row, exists := m[o.Row]
	post := o.Row[0] == 'p'
	switch o.Kind {
	case "create", "createLike":
		return m.create(o)
	case "check":
		if !exists || row.Version != o.Version {
			return &fault.Conflict{}
		}
		return nil
	}
	if post && o.Kind == "update" {
		if _, ok := m[o.Other]; !ok {
			return &fault.NotFound{}
		}
	}
	if o.Checked && (!exists || row.Version != o.Version) {
		return &fault.Conflict{}
	}
	if !exists {
		return &fault.NotFound{}
	}
	if o.Kind == "delete" {
		return m.remove(o.Row)
	}
	if !post && m.taken(o.Name, o.Row) {
		return &fault.Duplicate{}
	}
	row.Name, row.Version = o.Name, row.Version+1
	if post {
		row.Author = o.Other
	}
	m[o.Row] = row
	return nil
}

func (m model) create(o op) error {
	row := modelRow{Name: o.Name}
	if o.Row[0] == 'p' {
		row.Author = o.Other
		if o.Kind == "createLike" {
			like, ok := m[o.Other]
			if !ok {
				return nil // there is nothing to copy: the operation is left out
			}
			row.Author = like.Author
		}
		if _, ok := m[row.Author]; !ok {
			return &fault.NotFound{}
		}
	}
	if _, exists := m[o.Row]; exists || o.Row[0] == 'u' && m.taken(o.Name, o.Row) {
		return &fault.Duplicate{}
	}
	m[o.Row] = row
	return nil
}

func (m model) taken(name, except string) bool {
	for id, row := range m {
		if id[0] == 'u' && id != except && row.Name == name {
			return true
		}
	}
	return false
}

func (m model) remove(id string) error {
	for _, row := range m {
		if row.Author == id && row.Author != "" {
			return &fault.Restricted{}
		}
	}
	delete(m, id)
	return nil
}

func (m model) String() string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(m)) {
		text += fmt.Sprintf("%s=%+v ", id, m[id])
	}
	return text
}
