package store

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// odd are texts that mean something in PostgreSQL's notation of arrays.
var odd = []string{
	"", "plain", `"`, `\`, `\"`, `a"b\c"`, "{}", "{a,b}", ",", "null", "NULL", " spaced ", "\t\n\r", "'", "$1", "ä€😀", `{"k":["v",null,"\\"]}`,
}

func TestArraysMakeTheRoundTrip(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	nullable := []*string{nil}
	for i := range odd {
		nullable = append(nullable, &odd[i], nil)
	}
	if got := unnest(t, db, texts(odd)); len(got) != len(odd) {
		t.Errorf("%d of %d came back", len(got), len(odd))
	} else {
		for i, text := range got {
			if text == nil || *text != odd[i] {
				t.Errorf("%q came back as %v", odd[i], text)
			}
		}
	}
	got := unnest(t, db, nullTexts(nullable))
	if len(got) != len(nullable) {
		t.Fatalf("%d of %d came back", len(got), len(nullable))
	}
	for i, text := range got {
		if (text == nil) != (nullable[i] == nil) || text != nil && *text != *nullable[i] {
			t.Errorf("%d: %v came back as %v", i, nullable[i], text)
		}
	}
	for _, empty := range []string{texts(nil), nullTexts(nil)} {
		if got := unnest(t, db, empty); len(got) != 0 {
			t.Errorf("nothing came back as %v", got)
		}
	}
}

// unnest has the server read an array.
func unnest(t *testing.T, db sqldb.DB, array string) (values []*string) {
	t.Helper()
	row := func(scan sqldb.Scan) error {
		var v *string
		if err := scan(&v); err != nil {
			return err
		}
		values = append(values, v)
		return nil
	}
	if err := sqldb.Each(t.Context(), db, row, "select v from unnest($1::text[]) with ordinality as a (v, n) order by n", array); err != nil {
		t.Fatal(err)
	}
	return values
}

func FuzzQuoteIsUndoneByUnquoting(f *testing.F) {
	for _, text := range odd {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		quote(&b, text)
		quoted := b.String()
		var got []byte
		for i := 1; i < len(quoted)-1; i++ {
			if quoted[i] == '"' {
				t.Fatalf("%q ends early in %q", text, quoted)
			}
			if quoted[i] == '\\' {
				i++
			}
			got = append(got, quoted[i])
		}
		if string(got) != text {
			t.Errorf("%q was quoted as %q", text, quoted)
		}
	})
}
