package engine_test

import (
	"context"
	"os"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("PERDURE_TEST_ROLE"); role != "" {
		os.Exit(child(role)) // a test runs its own binary as another process
	}
	testdb.Main(m)
}

// Conformance has a case for each thing that an engine does, the same for all
// databases. The files conform_*_test.go add them by theme.
type Conformance struct{}

func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}) }

// The tables that most cases use.
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

// withOutbox are the options that most cases use.
func withOutbox() *perdure.Options {
	return &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: true}
}

// openBlog opens an engine with the blog's tables and the outbox.
func openBlog(t testing.TB, db enginetest.Database) *perdure.Engine {
	t.Helper()
	return db.Open(t, withOutbox())
}

// update commits a unit or ends the test.
func update(t testing.TB, eng *perdure.Engine, fn func(*perdure.Tx) error) {
	t.Helper()
	enginetest.NoError(t, eng.Update(enginetest.Context(t), fn))
}

// createUser commits a user.
func createUser(t testing.TB, eng *perdure.Engine, id string) {
	t.Helper()
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(users, schema.Values{"id": id, "name": "name of " + id})
		return err
	})
}

// get reads a row as it is committed.
func get(t testing.TB, eng *perdure.Engine, table *schema.Table, id string) (row *schema.Row) {
	t.Helper()
	err := eng.View(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		row, err = tx.Get(table, id)
		return err
	})
	enginetest.NoError(t, err)
	return row
}

// find reads all rows of a table as they are committed.
func find(t testing.TB, eng *perdure.Engine, table *schema.Table, options *perdure.FindOptions) (rows []*schema.Row) {
	t.Helper()
	err := eng.View(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		rows, err = tx.Find(table, options)
		return err
	})
	enginetest.NoError(t, err)
	return rows
}

// entries returns the whole outbox.
func entries(t testing.TB, eng *perdure.Engine) []outbox.Entry {
	t.Helper()
	var all []outbox.Entry
	var after outbox.Stamp
	for {
		page, err := eng.Outbox().List(enginetest.Context(t), after, outbox.MaxLimit)
		enginetest.NoError(t, err)
		all = append(all, page...)
		if len(page) < outbox.MaxLimit {
			return all
		}
		after = page[len(page)-1].Stamp
	}
}

// sound ends the test unless Verify finds nothing wrong.
func sound(t testing.TB, eng *perdure.Engine) {
	t.Helper()
	report, err := eng.Outbox().Verify(context.Background(), nil)
	enginetest.NoError(t, err)
	for _, problem := range report.Problems {
		t.Errorf("verify: %s", problem)
	}
}
