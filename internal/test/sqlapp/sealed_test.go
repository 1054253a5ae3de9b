package sqlapp_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// SQL cannot encrypt. Its values are plain, and processes with keys read them.
func TestValuesOfSQLArePlainUntilTheyAreWrittenAgain(t *testing.T) {
	t.Parallel()
	keys, err := perdure.ParseKeys("one:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	enginetest.NoError(t, err)
	f := newFixture(t, &perdure.Options{Keys: keys})
	f.spawn(t, "front")
	f.callAll(t, "commit")
	f.runs(t, "begin 1", "begin 2", "mail 3", "mail 4", "remind 5")
	enginetest.Eventually(t, "the states were written again", func() bool {
		return f.db.Int(t, `select count(*) from perdure.instances where state::text like '{"$sealed":"v1"%'`) == 2
	})
	// A value that looks encrypted is not taken for one.
	f.call(t, `select id from perdure.trigger('shop', 'mail', '{"id": "looks", "$sealed": "v1", "key": "one", "data": "AAAA"}')`)
	f.runs(t, "begin 1", "begin 2", "mail 3", "mail 4", "remind 5", "mail looks")
}
