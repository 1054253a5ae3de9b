package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// noon is when the hooks of a scene were created; times are given from it.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// hookScene is a database with a hook in every place, and three instances among them. MySQL
// has no instances.
type hookScene struct {
	*testing.T
	db sqldb.DB
	st *Store
}

// placed is a hook of a scene. Its row has the id item(n).
type placed struct {
	n         int
	key, lane string
	place     string // ready, or the status of its end, or "" for a hook that is in a lease at most
	suspect   bool
	priority  int
	attempt   int
	created   time.Duration
}

// item returns the id of a row.
func item(n int) string { return fmt.Sprintf("00000000-0000-7000-9000-%012x", n) }

var (
	mail = HookLane("shop", "mail")
	feed = HookLane("zoo", "feed")
)

// scenery has hooks in every place. Hooks 7 and 8 were created at the same time, and their
// keys are in the other order than their ids.
var scenery = []placed{
	{n: 1, key: "wait", lane: mail, place: "ready"},
	{n: 2, lane: mail, place: "ready", suspect: true, priority: -1, attempt: 2},
	{n: 3, key: "feed", lane: feed, place: "ready"},
	{n: 4, key: "run", lane: mail},
	{n: 5, lane: mail},
	{n: 6, key: "done", lane: feed, place: "done", attempt: 1},
	{n: 7, key: "fail-z", lane: mail, place: "failed", attempt: 5, created: time.Minute},
	{n: 8, key: "fail-a", lane: mail, place: "failed", attempt: 5, created: time.Minute},
	{n: 9, lane: feed, place: "quarantined"},
	{n: 10, key: "stop", lane: mail, place: "cancelled"},
}

// public returns the id that users know.
func (p placed) public() string {
	if p.key == "" {
		return item(p.n)
	}
	return p.key
}

// status returns the status of the hook in the scene.
func (p placed) status() string {
	if p.place == "" {
		return StatusRunning
	}
	return Refine(p.place, p.attempt, noon, noon)
}

func newHookScene(t *testing.T, name string) *hookScene {
	t.Helper()
	db, st := migrated(t, name)
	s := &hookScene{t, db, st}
	for _, p := range scenery {
		s.place(p)
	}
	// Hooks that are settled, or ready again, stay in their leases; 5 is in a newer one too.
	s.lease(2, HookQueue("shop"), item(4), item(5), item(7), item(1))
	s.lease(3, HookQueue("shop"), item(5))
	s.lease(4, HookQueue("zoo"), item(6), item(3))
	s.exec("insert into perdure.definitions (fsm, version, first_step, queue, steps, updated_at) values ('order', 1, 'pay', 'aaa', '[\"pay\"]', ?)", noon)
	for n, queue := range []string{"aaa", "hook", "zzz"} {
		id := fmt.Sprintf("00000000-0000-7000-8000-%012x", n)
		s.exec("insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at) values (?, 'order', 1, 'pay', '{}', ?, 0, ?, ?)", id, queue, noon, noon)
		if queue == "hook" {
			s.lease(1, queue, id)
			continue
		}
		s.exec("insert into perdure.ready (queue, priority, due_at, id) values (?, 0, ?, ?)", queue, noon, id)
	}
	return s
}

// exec runs a statement that is written for PostgreSQL's names.
func (s *hookScene) exec(text string, args ...any) {
	s.Helper()
	tx, err := s.db.Begin(s.Context(), sqldb.Write)
	if err != nil {
		s.Fatal(err)
	}
	defer tx.Rollback()
	d := s.db.Dialect()
	if d.Name == sqldb.MySQL {
		text = strings.ReplaceAll(text, " key,", " `key`,")
	}
	if err := tx.Run(s.Context(), sqldb.Exec(d.Rebind(localize(d, text)), args...)); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	if err := tx.Commit(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// read runs statements on one snapshot.
func (s *hookScene) read(stmts ...sqldb.Stmt) {
	s.Helper()
	tx, err := s.db.Begin(s.Context(), sqldb.Read)
	if err != nil {
		s.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Run(s.Context(), stmts...); err != nil {
		s.Fatal(err)
	}
}

func (s *hookScene) place(p placed) {
	s.Helper()
	_, namespace, name := ParseLane(p.lane)
	var key *string
	if p.key != "" {
		key = &p.key
	}
	var limit *int
	if p.suspect {
		limit = new(int)
	}
	created := noon.Add(p.created)
	s.exec(`insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, attempt, batch_limit, unit_id, created_at, due_at)
		values (?, ?, ?, ?, ?, '{}', ?, '{}', 5, ?, ?, 'u', ?, ?)`, item(p.n), key, namespace, name, p.lane, p.priority, p.attempt, limit, created, noon)
	switch p.place {
	case "":
	case "ready":
		s.exec("insert into perdure.ready (queue, suspect, priority, due_at, id) values (?, ?, ?, ?, ?)", p.lane, p.suspect, p.priority, noon, item(p.n))
	default:
		s.exec("insert into perdure.hook_ends (id, status, error, created_at, finished_at) values (?, ?, 'odd', ?, ?)", item(p.n), p.place, created, noon.Add(time.Hour))
	}
}

// lease writes a lease that expires an hour after noon.
func (s *hookScene) lease(n int, queue string, ids ...string) {
	s.Helper()
	raw, err := json.Marshal(ids)
	if err != nil {
		s.Fatal(err)
	}
	list := string(raw)
	if s.db.Dialect().Name == sqldb.Postgres {
		list = texts(ids)
	}
	s.exec("insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids) values (?, 'w', ?, ?, ?, ?, ?)",
		fmt.Sprintf("00000000-0000-4000-8000-%012x", n), queue, false, noon, noon.Add(time.Hour), list)
}

// eachHookScene runs a test on every database that has the whole of Perdure.
func eachHookScene(t *testing.T, test func(s *hookScene)) {
	t.Helper()
	hookScenes(t, []string{sqldb.SQLite, sqldb.Postgres}, test)
}

// hookScenes runs a test on some databases.
func hookScenes(t *testing.T, names []string, test func(s *hookScene)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newHookScene(t, name))
		})
	}
}

// same reports a difference.
func (s *hookScene) same(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("%s:\n%v, want\n%v", what, got, want)
	}
}

// expected returns "id status" of the hooks of the scene that are wanted, newest first.
func expected(wanted func(placed) bool) []string {
	all := slices.Clone(scenery)
	slices.SortFunc(all, func(a, b placed) int {
		if a.created != b.created {
			return int(b.created - a.created)
		}
		return b.n - a.n
	})
	var texts []string
	for _, p := range all {
		if wanted(p) {
			texts = append(texts, p.public()+" "+p.status())
		}
	}
	return texts
}

func TestListsOfHooksHaveEachOnceInOrder(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		for walk, wanted := range map[string]func(placed) bool{
			Everywhere: func(placed) bool { return true },
			Died:       func(p placed) bool { return p.place == "failed" || p.place == "quarantined" },
			Running:    func(p placed) bool { return p.place == "" },
		} {
			var got []string
			at := HookPlace{At: latest, Item: firstID}
			for more := true; more; { // pages of one
				more = false
				s.read(s.st.HooksIn(walk, at, 1, func(p HookPlace) {
					at, more = p, true
					got = append(got, p.ID+" "+Refine(p.Status, p.Attempts, p.Due, noon))
				}))
			}
			s.same("hooks in "+walk, got, expected(wanted))
		}
	})
}

func TestDeadHooksAreListedOnceInOrder(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		var got []string
		at := DeadPosition{}
		for more := true; more; {
			more = false
			s.read(s.st.DeadLetters(HookKind, at, 1, func(d Dead) {
				at, more = DeadPosition{ID: d.Item, At: d.Created}, true
				got = append(got, fmt.Sprint(d.ID, " ", d.Name, " ", d.Status, " ", d.Error, " ", d.Attempts, " ", d.Died.Equal(noon.Add(time.Hour))))
			}))
		}
		s.same("dead hooks", got, []string{"fail-a shop/mail failed odd 5 true", "fail-z shop/mail failed odd 5 true", item(9) + " zoo/feed quarantined odd 0 true"})
	})
}

func TestWaitingHooksAreFoundApartFromInstances(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		groups, queues := s.groups()
		s.same("groups of hooks", groups, []HookGroup{{"shop", "mail", false, 0}, {"shop", "mail", true, -1}, {"zoo", "feed", false, 0}})
		s.same("groups of instances", queues, []ReadyGroup{{Queue: "aaa"}, {Queue: "zzz"}})
		var waiting, upcoming []string
		count := 0
		in := Span{After: noon.Add(-time.Hour), Until: noon}
		for _, g := range groups {
			s.read(
				s.st.WaitingHooks(g, HookPlace{At: in.After, Item: firstID}, 10, func(p HookPlace) {
					waiting = append(waiting, p.Item+" "+p.ID+" "+Refine(p.Status, p.Attempts, p.Due, noon))
				}),
				s.st.UpcomingHooks(g, in, 10, func(u Upcoming) { upcoming = append(upcoming, u.ID+" "+u.Name+" "+u.Why) }),
				s.st.CountDueHooks(g, in, 10, func(n int, first *time.Time) {
					count += n
					if first == nil || !first.Equal(noon) {
						s.Errorf("the first of %v is due at %v", g, first)
					}
				}),
			)
		}
		s.same("waiting hooks", waiting, []string{item(1) + " wait ready", item(2) + " " + item(2) + " retrying", item(3) + " feed ready"})
		s.same("upcoming hooks", upcoming, []string{"wait shop/mail first attempt", item(2) + " shop/mail attempt 3", "feed zoo/feed first attempt"})
		s.same("due hooks", count, 3)
		s.same("executing instances", s.executing(), []string{"00000000-0000-7000-8000-000000000001"})
	})
}

func (s *hookScene) groups() (hooks []HookGroup, instances []ReadyGroup) {
	s.Helper()
	tx, err := s.db.Begin(s.Context(), sqldb.Read)
	if err != nil {
		s.Fatal(err)
	}
	defer tx.Rollback()
	if hooks, err = sqldb.Walk(s.Context(), tx, HookGroup{Priority: -100}, s.st.NextHookGroup); err != nil {
		s.Fatal(err)
	}
	if instances, err = sqldb.Walk(s.Context(), tx, ReadyGroup{Priority: -100}, s.st.NextReadyGroup); err != nil {
		s.Fatal(err)
	}
	return hooks, instances
}

func (s *hookScene) executing() (ids []string) {
	s.Helper()
	s.read(s.st.InstancesIn(ExecutingPlace, lastID, 10, func(id string) { ids = append(ids, id) }))
	return ids
}

func TestDepthsOfHooksAndInstancesAreApart(t *testing.T) {
	t.Parallel()
	hookScenes(t, dialects, func(s *hookScene) {
		depths := map[string]int64{}
		s.read(s.st.Depths(noon, func(d Depth) {
			if d.N > 0 {
				depths[d.Kind+" "+d.Status] = d.N
			}
		})...)
		want := map[string]int64{"hook ready": 3, "hook running": 2, "hook failed": 2, "hook quarantined": 1, "instance ready": 2}
		s.same("depths", depths, want)
	})
}

func TestHooksAreCountedByPlaceAndInSamples(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		places := map[string]int{}
		s.read(s.st.CountPlaces(10, func(place string, n int) {
			if strings.HasPrefix(place, "hooks.") {
				places[place] = n
			}
		}))
		s.same("places", places, map[string]int{"hooks.running": 2, "hooks.failed": 3})
		samples := map[string]Sample{}
		s.read(s.st.TakeSamples(Span{After: noon, Until: noon.Add(time.Hour)}, func(v Sample) { samples[v.Kind] = v })...)
		s.same("samples", samples[HookKind], Sample{Kind: HookKind, At: noon.Add(time.Hour), Finished: 2, Failed: 3})
	})
}
