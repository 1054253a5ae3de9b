package store

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Node is a running process.
type Node struct {
	ID, Host    string
	PID         int
	Version     string
	Roles, Work string // JSON
	// Running is the work that was running at the last heartbeat.
	Running  []NodeQueue
	Draining bool
	Started  time.Time
	Seen     time.Time
}

// NodeQueue is the number of running items of one queue of a kind of work.
type NodeQueue struct {
	Kind    string `json:"kind"`
	Queue   string `json:"queue"`
	Running int64  `json:"running"`
	// Idle is true if the process currently claims no work from the queue.
	Idle bool `json:"idle,omitempty"`
	// Serves are the names of the work that the process claims: definitions with their
	// versions, hooks or types. nil means all.
	Serves []string `json:"serves"`
	// Held are the names whose work waits because they have no further slots.
	Held []string `json:"held,omitempty"`
}

// BeatNode returns the statements that record a heartbeat of a process. drain is set to whether
// an operator has asked the process to drain.
func (s *Store) BeatNode(n Node, now Now, drain *bool) []sqldb.Stmt {
	running, _ := json.Marshal(append([]NodeQueue{}, n.Running...)) // cannot fail: only names and numbers
	beat := s.stmts("NodeBeat", n.ID, n.Host, n.PID, n.Version, n.Roles, n.Work, string(running), at(now))
	beat[len(beat)-1].Row = func(scan sqldb.Scan) error { return scan(drain) }
	return beat
}

// Nodes returns the statement that reads all processes. found also receives the current time,
// with which the heartbeats are compared.
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
		_ = json.Unmarshal([]byte(running), &n.Running) // best effort: shows the values that can be decoded
		found(n, t.UTC())
		return nil
	}
	return list
}

// DrainNode returns the statement that asks a process to drain.
func (s *Store) DrainNode(id string) sqldb.Stmt {
	return needsOne(s.stmt("NodeDrain", id), &fault.NotFound{Kind: "node", ID: id})
}

// RemoveNode returns the statement that removes a process that has stopped.
func (s *Store) RemoveNode(id string) sqldb.Stmt { return s.stmt("NodeRemove", id) }

// PurgeNodes returns the statement that removes processes whose last heartbeat is older than
// age.
func (s *Store) PurgeNodes(age time.Duration, now Now) sqldb.Stmt {
	return s.stmt("NodePurge", at(now), age.Microseconds())
}

// Sample is the number of items that finished in an interval that ends at a time, and the
// number that were due at that time.
type Sample struct {
	Kind                  string
	At                    time.Time
	Finished, Failed, Due int
}

// samplers are the statements that count finished work of each kind.
var samplers = map[string]string{InstanceKind: "SampleInstances", HookKind: "SampleHooks", TaskKind: "SampleTasks"}

// TakeSamples returns the statements that count the work that finished in an interval.
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

// InsertSample returns the statement that stores a sample, unless it exists.
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

// Waits is a histogram of waiting times in an interval that ends at a time. Each bucket has the
// number of waits.
type Waits struct {
	At      time.Time
	Buckets []int64
}

// InsertWaits returns the statement that stores the waits of a process, unless it has already
// stored the waits of the interval.
func (s *Store) InsertWaits(node string, w Waits) sqldb.Stmt {
	raw, _ := json.Marshal(w.Buckets) // cannot fail: only numbers
	return s.stmt("WaitsInsert", w.At, node, string(raw))
}

// ListWaits returns the statement that reads the waits after a time.
func (s *Store) ListWaits(after time.Time, found func(Waits)) sqldb.Stmt {
	return twoColumns(s.stmt("WaitsList", after), func(at time.Time, raw string) {
		w := Waits{At: at.UTC()}
		_ = json.Unmarshal([]byte(raw), &w.Buckets) // best effort: shows the values that can be decoded
		found(w)
	})
}

// PurgeWaits returns the statement that removes waits up to a time.
func (s *Store) PurgeWaits(until time.Time) sqldb.Stmt { return s.stmt("WaitsPurge", until) }

// Marks returns the statement that reads a mark of each kind. The mark changes when work of the
// kind changes.
func (s *Store) Marks(found func(kind, mark string)) sqldb.Stmt {
	return twoColumns(s.stmt("InspectMarks"), found)
}
