package store

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

func TestHooksAreFoundByTheBeginningOfTheirPublicID(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		find := func(keys string, ids *Range) (hits []string) {
			s.read(s.st.SearchHooks(Range{keys, keys + "\U0010FFFF"}, ids, func() time.Time { return noon }, func(h Hit) { hits = append(hits, h.ID+" "+h.Name+" "+h.Detail) }))
			return hits
		}
		s.same("keys", find("f", nil), []string{"fail-a shop/mail failed", "fail-z shop/mail failed", "feed zoo/feed ready"})
		s.same("no key", find("x", nil), []string(nil))
		s.same("ids", find("00000000", &Range{firstID, lastID}), []string{item(2) + " shop/mail retrying", item(5) + " shop/mail running", item(9) + " zoo/feed quarantined"})
		s.same("the id of a row with a key", find(item(1), &Range{item(1), item(1)}), []string(nil))
		var values []string
		s.read(s.st.Facets(HookKind, func(_, value string) { values = append(values, value) })...)
		for _, want := range []string{"shop", "zoo", "mail", "feed"} {
			if !strings.Contains(strings.Join(values, " "), want) {
				t.Errorf("%v lacks %s", values, want)
			}
		}
	})
}

func TestTheAuditLogFindsHooksByTheirPublicID(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		for _, p := range scenery {
			var got []AuditState
			stmt, ok := s.st.AuditState("hooks", []string{p.public()}, noon, func(a AuditState) { got = append(got, a) })
			if !ok {
				s.Fatalf("%s has no state", p.public())
			}
			s.read(stmt)
			attempts := int64(p.attempt)
			if p.place == "done" {
				attempts++
			}
			_, _, name := ParseLane(p.lane)
			if len(got) != 1 || *got[0].Name != name || *got[0].Status != p.status() || *got[0].Attempts != attempts {
				s.Errorf("%s: %+v", p.public(), got)
			}
		}
		stmt, _ := s.st.AuditState("hooks", []string{item(1)}, noon, func(a AuditState) { s.Errorf("the id of a row with a key: %+v", a) })
		s.read(stmt)
	})
}

func TestAHookIsClaimedWhileALiveLeaseHoldsIt(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		for _, c := range []struct {
			namespace, name string
			at              time.Duration
			want            bool
		}{
			{"shop", "mail", time.Minute, true},
			{"shop", "mail", time.Hour, false},
			{"zoo", "feed", time.Minute, false}, // its lease names only hooks that are in other places
			{"zoo", "mail", time.Minute, false},
		} {
			claimed := !c.want
			stmt, ok := s.st.Claimed(HookKind, Waiting{Queue: c.namespace, Name: c.name}, noon.Add(c.at), &claimed)
			if !ok {
				s.Fatal("hooks have no claims")
			}
			s.read(stmt)
			if claimed != c.want {
				s.Errorf("%+v: %v", c, claimed)
			}
		}
	})
}

// marks returns the marks of hooks and instances.
func (s *hookScene) marks() (hooks, instances string) {
	s.Helper()
	s.read(s.st.Marks(func(kind, mark string) {
		switch kind {
		case HookKind:
			hooks = mark
		case InstanceKind:
			instances = mark
		}
	}))
	return hooks, instances
}

func TestOnlyTheMarkOfHooksChangesWithAHook(t *testing.T) {
	t.Parallel()
	eachHookScene(t, func(s *hookScene) {
		hooks, instances := s.marks()
		for what, change := range map[string]func(){
			"a claim":     func() { s.lease(9, HookQueue("shop"), item(1)) },
			"a ready row": func() { s.exec("delete from perdure.ready where id = ?", item(1)) },
			"an end": func() {
				s.exec("insert into perdure.hook_ends (id, status, created_at, finished_at) values (?, 'done', ?, ?)", item(4), noon, noon.Add(2*time.Hour))
			},
			"a dead letter": func() {
				s.exec("insert into perdure.hook_ends (id, status, created_at, finished_at) values (?, 'failed', ?, ?)", item(5), noon, noon)
			},
			"a new hook": func() { s.place(placed{n: 20, lane: mail, created: 2 * time.Minute}) },
		} {
			change()
			newHooks, newInstances := s.marks()
			if newHooks == hooks {
				s.Errorf("%s does not change the mark of hooks", what)
			}
			if newInstances != instances {
				s.Errorf("%s changes the mark of instances", what)
			}
			hooks = newHooks
		}
	})
}

// PostgreSQL orders texts by a collation. In one that ignores tabs, the lanes of hooks are
// between the queues of instances.
func TestLanesAmongQueuesAreFound(t *testing.T) {
	t.Parallel()
	s := newHookScene(t, sqldb.Postgres)
	s.exec(`drop view perdure.v1_instances, perdure.v1_hooks, perdure.v1_alarms, perdure.hooks, perdure.alarms`) // they have the column
	s.exec(`create collation perdure.shifted (provider = icu, locale = 'und-u-ka-shifted')`)
	s.exec(`alter table perdure.ready alter column queue type text collate perdure.shifted`)
	for n, queue := range []string{"hooksi", "hookt"} {
		s.exec("insert into perdure.ready (queue, priority, due_at, id) values (?, 0, ?, ?)", queue, noon, item(100+n))
	}
	hooks, instances := s.groups()
	s.same("groups of hooks", hooks, []HookGroup{{"shop", "mail", false, 0}, {"shop", "mail", true, -1}, {"zoo", "feed", false, 0}})
	s.same("groups of instances", instances, []ReadyGroup{{Queue: "aaa"}, {Queue: "hooksi"}, {Queue: "hookt"}, {Queue: "zzz"}})
	depths := map[string]int64{}
	s.read(s.st.Depths(noon, func(d Depth) { depths[d.Kind+" "+d.Status] = d.N })...)
	if depths["hook ready"] != 3 || depths["instance ready"] != 4 {
		t.Errorf("depths: %v", depths)
	}
}
