package store

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Node is a process that runs.
type Node struct {
	ID, Host    string
	PID         int
	Version     string
	Roles, Work string // JSON
	// Running is how much it ran when it was last seen.
	Running  []NodeQueue
	Draining bool
	Started  time.Time
	Seen     time.Time
}

// NodeQueue is how much a process runs of one part of a kind of work.
type NodeQueue struct {
	Kind    string `json:"kind"`
	Queue   string `json:"queue"`
	Running int64  `json:"running"`
	// Idle is true if the process claims nothing of it now.
	Idle bool `json:"idle,omitempty"`
	// Serves are the names of the work that it claims: definitions with their
	// versions, hooks or types. nil: all.
	Serves []string `json:"serves"`
}

// BeatNode returns the statements that note that a process lives; drain learns
// whether somebody has asked it to end its work.
func (s *Store) BeatNode(n Node, now Now, drain *bool) []sqldb.Stmt {
	running, _ := json.Marshal(append([]NodeQueue{}, n.Running...)) // names and numbers
	beat := s.stmts("NodeBeat", n.ID, n.Host, n.PID, n.Version, n.Roles, n.Work, string(running), at(now))
	beat[len(beat)-1].Row = func(scan sqldb.Scan) error { return scan(drain) }
	return beat
}

// Nodes returns the statement that reads all processes; now is the time to compare
// their signs of life with.
func (s *Store) Nodes(now Now, found func(n Node, now time.Time)) sqldb.Stmt {
	list := s.stmt("NodeList", at(now))
	list.Row = func(scan sqldb.Scan) error {
		var n Node
		var running string
		var t time.Time
		err := scan(&n.ID, &n.Host, &n.PID, &n.Version, &n.Roles, &n.Work, &running, &n.Draining, &n.Started, &n.Seen, &t)
		if err != nil {
			return err
		}
		n.Started, n.Seen = n.Started.UTC(), n.Seen.UTC()
		_ = json.Unmarshal([]byte(running), &n.Running) // shown as far as it can be read
		found(n, t.UTC())
		return nil
	}
	return list
}

// DrainNode returns the statement that asks a process to end its work.
func (s *Store) DrainNode(id string) sqldb.Stmt {
	return needsOne(s.stmt("NodeDrain", id), &fault.NotFound{Kind: "node", ID: id})
}

// RemoveNode returns the statement that forgets a process that has ended.
func (s *Store) RemoveNode(id string) sqldb.Stmt { return s.stmt("NodeRemove", id) }

// PurgeNodes returns the statement that forgets processes without a sign of life.
func (s *Store) PurgeNodes(age time.Duration, now Now) sqldb.Stmt {
	return s.stmt("NodePurge", at(now), age.Microseconds())
}

// Sample is what was finished in an interval that ends at a time, and what was due
// then.
type Sample struct {
	Kind                  string
	At                    time.Time
	Finished, Failed, Due int
}

// samplers count what was finished of each kind.
var samplers = map[string]string{InstanceKind: "SampleInstances", HookKind: "SampleHooks", TaskKind: "SampleTasks"}

// TakeSamples returns the statements that count what was finished in an interval.
func (s *Store) TakeSamples(in Span, found func(Sample)) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for kind, name := range samplers {
		take := read(s.stmt(name, in.After, in.Until), func(v Sample) {
			v.Kind = kind
			v.At = in.Until
			found(v)
		}, func(v *Sample) []any { return []any{&v.Finished, &v.Failed} })
		stmts = append(stmts, take)
	}
	return stmts
}

// InsertSample returns the statement that keeps a sample, unless there is one.
func (s *Store) InsertSample(v Sample) sqldb.Stmt {
	return s.stmt("SampleInsert", v.Kind, v.At, v.Finished, v.Failed, v.Due)
}

// Samples returns the statement that reads samples after a time.
func (s *Store) Samples(after time.Time, found func(Sample)) sqldb.Stmt {
	return read(s.stmt("SampleList", after), func(v Sample) {
		v.At = v.At.UTC()
		found(v)
	}, func(v *Sample) []any { return []any{&v.Kind, &v.At, &v.Finished, &v.Failed, &v.Due} })
}

// PurgeSamples returns the statement that removes samples up to a time.
func (s *Store) PurgeSamples(until time.Time) sqldb.Stmt { return s.stmt("SamplePurge", until) }

// Waits is how long work waited in an interval that ends at a time: how many waits
// were in each bucket of a histogram.
type Waits struct {
	At      time.Time
	Buckets []int64
}

// InsertWaits returns the statement that keeps the waits of a process, unless it has
// kept those of the interval.
func (s *Store) InsertWaits(node string, w Waits) sqldb.Stmt {
	raw, _ := json.Marshal(w.Buckets) // numbers
	return s.stmt("WaitsInsert", w.At, node, string(raw))
}

// ListWaits returns the statement that reads the waits after a time.
func (s *Store) ListWaits(after time.Time, found func(Waits)) sqldb.Stmt {
	return twoColumns(s.stmt("WaitsList", after), func(at time.Time, raw string) {
		w := Waits{At: at.UTC()}
		_ = json.Unmarshal([]byte(raw), &w.Buckets) // shown as far as it can be read
		found(w)
	})
}

// PurgeWaits returns the statement that removes waits up to a time.
func (s *Store) PurgeWaits(until time.Time) sqldb.Stmt { return s.stmt("WaitsPurge", until) }

// Marks returns the statement that reads a mark of each kind, which changes when
// something of the kind does.
func (s *Store) Marks(found func(kind, mark string)) sqldb.Stmt {
	return twoColumns(s.stmt("InspectMarks"), found)
}
