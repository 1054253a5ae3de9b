package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/test/enginetest"
)

var errRefused = errors.New("refused")

func isRefused(err error) bool {
	var duplicate *fault.Duplicate
	return errors.Is(err, errRefused) || errors.As(err, &duplicate)
}

// A part that is refused leaves nothing behind, be it refused by us or by the
// database; the parts around it stay, and so does what follows their commit.
func (Conformance) APartThatIsRefusedIsTakenBackAlone(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	db.Exec(t, "create table taken (id integer primary key)")
	db.Exec(t, "insert into taken values (1)")
	table := db.Table("blog", "users")
	set := func(tx *perdure.Tx, points int) error {
		_, err := tx.Exec(fmt.Sprintf("update %s set points = %d", table, points))
		return err
	}
	var told []string
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
		told = nil
		for _, part := range []struct {
			name    string
			refused bool
			run     func() error
		}{
			{"first", false, func() error { return set(tx, 1) }},
			{"ours", true, func() error { return errors.Join(set(tx, 2), errRefused) }},
			{"the database's", true, func() error {
				_ = set(tx, 4)
				_, err := tx.Exec("insert into taken values (1)")
				return err
			}},
			{"last", false, func() error {
				_, err := tx.Exec("update " + table + " set points = points + 4")
				return err
			}},
		} {
			refused, err := tx.Try(isRefused, func() error {
				if err := host.In(tx).Attach(func() { told = append(told, part.name) }); err != nil {
					return err
				}
				return part.run()
			})
			if err != nil || (refused != nil) != part.refused {
				t.Errorf("%s: refused %v, error %v", part.name, refused, err)
			}
		}
		return nil
	})
	enginetest.NoError(t, err)
	if len(told) != 2 || told[0] != "first" || told[1] != "last" {
		t.Errorf("after the commit: %v", told)
	}
	if points := get(t, eng, users, "ann").Int("points"); points != 5 {
		t.Errorf("points are %d", points)
	}
}

// Any other error fails the unit, however it is looked at.
func (Conformance) APartThatFailsFailsTheUnit(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Try(isRefused, func() error {
				_, _ = tx.Exec("delete from " + db.Table("blog", "users"))
				_, _ = tx.Exec("this is no SQL")
				return errRefused // it is not only that
			})
			return nil
		})
		if err == nil || errors.Is(err, errRefused) {
			t.Errorf("the unit ended with %v", err)
		}
	})
}
