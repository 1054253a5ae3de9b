package api

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/inspect"
)

// Node is a running process.
type Node struct {
	ID        string      `json:"id"`
	Host      string      `json:"host"`
	PID       int         `json:"pid"`
	Version   string      `json:"version"`
	Roles     []string    `json:"roles" nullable:"false"`
	Work      []string    `json:"work" nullable:"false" doc:"Kinds of work that it runs."`
	Status    string      `json:"status" enum:"up,draining,gone"`
	Running   int64       `json:"running" doc:"Number of work items that were running at the last heartbeat."`
	Queues    []NodeQueue `json:"queues" nullable:"false" doc:"Number of running work items by queue."`
	StartedAt Time        `json:"started_at"`
	SeenAt    Time        `json:"seen_at"`
}

// NodeQueue is a queue that a process serves.
type NodeQueue struct {
	Kind    string `json:"kind"`
	Queue   string `json:"queue" doc:"Queue or namespace. Empty if the kind has none."`
	Running int64  `json:"running"`
	Idle    bool   `json:"idle,omitempty" doc:"True if the process currently claims no work of it."`
	// Serves are the definitions, hooks or types that the process claims.
	Serves []string `json:"serves" doc:"Names that it claims: definitions with their versions, hooks or types. null: all."`
	// Held are the names whose work waits because they have no further slots.
	Held []string `json:"held,omitempty" doc:"Names whose work waits, because they have as many slots as they may: fsm:, hook:, alarm:, task: or system: and a name. A system that fails repeatedly has fewer slots until it answers."`
}

func showNode(n inspect.Node) Node {
	shown := Node{
		ID: n.ID, Host: n.Host, PID: n.PID, Version: n.Version, Roles: []string{}, Work: []string{}, Queues: []NodeQueue{}, Status: "up",
		StartedAt: Time(n.Started), SeenAt: Time(n.Seen),
	}
	_ = json.Unmarshal([]byte(n.Roles), &shown.Roles) // values that cannot be decoded are left out
	_ = json.Unmarshal([]byte(n.Work), &shown.Work)
	for _, q := range n.Running {
		shown.Running += q.Running
		shown.Queues = append(shown.Queues, NodeQueue(q))
	}
	switch {
	case n.Lost:
		shown.Status = "gone"
	case n.Draining:
		shown.Status = "draining"
	}
	return shown
}

func (a *API) listNodes(ctx context.Context, _ *struct{}) (*List[Node], error) {
	all, err := a.inspect.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", showNode), nil
}

// drainNode requests that a process drains. The process starts to drain at its next
// heartbeat.
func (a *API) drainNode(ctx context.Context, in *ActOn) (*Done[Acted], error) {
	return effect(ctx, a, in.Key, nil, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{in.ID} }, host.In(tx).Attach(nil, a.rt.Store.DrainNode(in.ID))
	})
}
