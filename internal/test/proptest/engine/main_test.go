// Package engine_test compares random units of work with a model. It is apart from the
// package that it tests, so that users of that package do not get the module that draws
// the units.
package engine_test

import (
	"errors"
	"flag"
	"strconv"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", strconv.Itoa(25*enginetest.Soak())) // unless the command line says otherwise
	testdb.Main(m)
}

var (
	users = schema.NewTable("users",
		schema.String("name").Unique(),
		schema.Int("points").Default(0),
	)
	posts = schema.NewTable("posts",
		schema.Ref("author", users),
		schema.Ref("editor", users).Optional(),
		schema.Text("body").Default(""),
	).Index("author")
	blog = schema.New("blog", users, posts)
)

var errMine = errors.New("my own error")

func withOutbox() *perdure.Options {
	return &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: true}
}

// onServers runs a test on each database that is reached over a network.
func onServers(t *testing.T, test func(t *testing.T, db enginetest.Database)) {
	t.Helper()
	for _, name := range []string{enginetest.Postgres, enginetest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, enginetest.New(t, name))
		})
	}
}
