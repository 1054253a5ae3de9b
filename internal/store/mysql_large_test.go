package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// MariaDB cuts arrays that are longer than a variable of the session says.
func TestAClaimOnMySQLTakesTenThousandHooksWithLongNames(t *testing.T) {
	t.Parallel()
	const hooks = 10_000
	h := newHooksOn(t)
	namespace, name := strings.Repeat("ü", 128), strings.Repeat("n", 128)
	lane := "hook\t" + namespace + "\t" + name
	numbers := make([]int, hooks)
	for n := range numbers {
		numbers[n] = n + 1
	}
	set, err := json.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	h.run(sqldb.Exec(`insert into perdure_hook_items (id, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
		select concat('018f4e5a-0000-7abc-8def-', lpad(n, 12, '0')), ?, ?, ?, '{"n":1}', 0, '{"p":2}', 5, 'unit', ?, ? from json_table(?, '$[*]' columns (n int path '$')) numbers`,
		namespace, name, lane, h.now, h.now, string(set)),
		sqldb.Exec("insert into perdure_ready (queue, priority, due_at, id) select queue, priority, due_at, id from perdure_hook_items"))
	tx := h.begin()
	got, err := h.claim(t.Context(), tx, hooks, uuid.NewString(), lane)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != hooks {
		t.Errorf("claimed %d of %d hooks", len(got), hooks)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.count("ready"); n != "0" {
		t.Errorf("%s rows are left in ready", n)
	}
	same(t, "ids", texted(t, h.db, 1, "select cast(json_length(ids) as char) from perdure.leases"), []string{"10000"})
}
