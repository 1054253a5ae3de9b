package api

import (
	"reflect"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/task"
)

// The API has the statuses that the packages have.
func TestEveryStatusIsInTheAPI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of       any
		statuses []perdure.Status
	}{
		{Hook{}, hook.Statuses}, {HookMatch{}, hook.Statuses}, {Task{}, task.Statuses}, {TaskMatch{}, task.Statuses}, {Alarm{}, alarm.Statuses}, {AlarmMatch{}, alarm.Statuses},
	} {
		want := ""
		for i, s := range c.statuses {
			if i > 0 {
				want += ","
			}
			want += string(s)
		}
		field, _ := reflect.TypeOf(c.of).FieldByName("Status")
		if got := field.Tag.Get("enum"); got != want {
			t.Errorf("%T has the statuses %s, want %s", c.of, got, want)
		}
	}
}
