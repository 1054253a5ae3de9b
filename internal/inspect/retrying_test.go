package inspect_test

import (
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Instances that wait for another attempt have a status of their own, whether the attempt
// is due or not, and are not among those that wait for their first one.
func TestInstancesThatWaitForAnotherAttemptAreListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, i *inspect.Inspector, db enginetest.Database) {
		db.Exec(t, "update "+db.Table("perdure", "instances")+" set attempt = 1, failures = 1 where step = 'ship'")
		count := map[fsm.Status]int{}
		for _, status := range []fsm.Status{fsm.Retrying, fsm.Ready, fsm.Scheduled} {
			count[status] = walked(t, string(status), func(cursor string) (ids []string, next string, err error) {
				rows, next, err := i.Instances(t.Context(), inspect.Instances{Statuses: only(status)}, cursor, 7)
				for _, r := range rows {
					if ids = append(ids, r.ID); r.Status != status || (r.Failures == 1) != (status == fsm.Retrying) {
						t.Errorf("%s has %s, which is %s with %d failures", status, r.ID, r.Status, r.Failures)
					}
				}
				return ids, next, err
			})
		}
		all := walked(t, "all three", func(cursor string) ([]string, string, error) {
			return i.FindInstances(t.Context(), inspect.Instances{Statuses: []fsm.Status{fsm.Retrying, fsm.Ready, fsm.Scheduled}}, cursor, 7)
		})
		if count[fsm.Retrying] == 0 || count[fsm.Retrying]+count[fsm.Ready]+count[fsm.Scheduled] != few/20 || all != few/20 {
			t.Errorf("%v and %d together, want %d", count, all, few/20)
		}
	})
}
