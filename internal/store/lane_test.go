package store

import (
	"reflect"
	"testing"
)

func TestALaneTellsItsHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lane, kind, namespace, name string }{
		{HookLane("mail", "welcome"), HookKind, "mail", "welcome"},
		{HookQueue("mail"), HookKind, "mail", ""},
		{"mail", InstanceKind, "", "mail"},
		{"hook", InstanceKind, "", "hook"},
		{"", InstanceKind, "", ""},
	} {
		if kind, namespace, name := ParseLane(c.lane); kind != c.kind || namespace != c.namespace || name != c.name {
			t.Errorf("%q: %s %q %q, want %s %q %q", c.lane, kind, namespace, name, c.kind, c.namespace, c.name)
		}
	}
}

func TestAPublicIDThatIsNoUUIDFindsNoRowByItsID(t *testing.T) {
	t.Parallel()
	id := "01890a5d-ac96-774b-bcce-b302099a8057"
	for public, want := range map[string][]any{
		id:                                     {id, id},
		"order-1":                              {"order-1", nil},
		"":                                     {"", nil},
		"{" + id + "}":                         {"{" + id + "}", nil},
		"01890A5D-AC96-774B-BCCE-B302099A8057": {"01890A5D-AC96-774B-BCCE-B302099A8057", nil},
	} {
		if got := hookArgs(public); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", public, got, want)
		}
	}
}
