package fsm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// shape is a state whose fields a form can ask for.
type shape struct {
	Customer string    `json:"customer" jsonschema:"who pays"`
	Cents    int       `json:"cents,omitempty"`
	Due      time.Time `json:"due"`
}

// riddle is a state that looks in JSON as only its method knows.
type riddle struct{ N int }

// MarshalJSON implements json.Marshaler.
func (r riddle) MarshalJSON() ([]byte, error) { return json.Marshal([]int{r.N}) }

func ends[S any](_ context.Context, r *fsm.Run[S]) (fsm.Outcome, error) { return r.Done(nil), nil }

func TestARecordedMachineHasTheSchemaOfItsState(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(fsm.Define("shaped", 1, nil, fsm.Step("only", ends[shape], nil)), fsm.Define("riddle", 1, nil, fsm.Step("only", ends[riddle], nil)),
			fsm.Define("raw", 1, nil, fsm.Step("only", ends[json.RawMessage], nil)))
		enginetest.NoError(t, f.Announce(t.Context()))
		all, err := f.Definitions(t.Context())
		enginetest.NoError(t, err)
		for _, d := range all {
			if d.Name != "shaped" {
				if d.Schema != nil {
					t.Errorf("%s has the schema %s", d.Name, d.Schema)
				}
				continue
			}
			for _, part := range []string{`"customer"`, `"who pays"`, `"cents"`, `"required"`, `"integer"`} {
				if !strings.Contains(string(d.Schema), part) {
					t.Errorf("the schema lacks %s: %s", part, d.Schema)
				}
			}
		}
	})
}
