// Package remote runs state machines whose steps are HTTP endpoints, so that they can be
// written in any language.
//
// A definition names the endpoints. It is stored, and every process that runs workers
// loads it. The process that claims an instance sends its step as a signed request and
// receives the outcome as a signed response, both as in Standard Webhooks. Timeouts,
// retries and claims work as for steps in Go: if a claim is lost, a late response is
// discarded.
//
//	registry, err := remote.New(eng, machines, &remote.Options{Allow: []string{"10.0.0.0/8"}})
//	registry.Start()
//	defer registry.Close()
//	stored, err := registry.Put(ctx, remote.Definition{
//		Name: "order", Version: 1, URL: "https://orders.example.com/steps",
//		Steps: []remote.Step{{Name: "charge"}, {Name: "ship"}},
//	})
//	// stored.Generated is the secret that the endpoint needs.
//
// Requests go only to public addresses, unless Options.Allow lists others. Request and
// Answer are the bodies of requests and responses.
package remote

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

const (
	// DefaultTimeout is the time limit for steps that set none.
	DefaultTimeout = 30 * time.Second
	// MaxTimeout is the longest time limit of a step.
	MaxTimeout = 15 * time.Minute
	// MaxSteps is the maximum number of steps of a definition.
	MaxSteps = 200
	// MaxRetryAfter is the longest delay that an endpoint can request.
	MaxRetryAfter = 24 * time.Hour
	// MaxMessage is the largest request and the largest response in bytes.
	MaxMessage = 8 << 20
)

// Definition is a state machine whose steps are HTTP endpoints.
type Definition struct {
	Name    string
	Version int
	// Queue is the queue of its instances; see Options.KeepQueues. Default:
	// fsm.DefaultQueue.
	Queue string
	// URL is the endpoint of steps that set none. A request names its step.
	URL string
	// Steps are the steps. An instance starts with the first.
	Steps []Step
	// Retry is the policy for steps that fail. Default: fsm.DefaultRetry.
	Retry retry.Policy
	// OnCancel is the step that runs when an instance is cancelled or passes its
	// deadline. Default: none, the instance is finished.
	OnCancel string
	// Secrets sign requests and responses. There is one secret, or two while a secret is
	// being replaced, first the one that stays. Each is "whsec_" and 24 to 64 bytes in base64.
	// Default: the stored secrets; a secret is generated for a new definition.
	Secrets []string
}

// Step is a step of a definition.
type Step struct {
	Name string
	// URL is its endpoint. Default: the definition's URL.
	URL string
	// Timeout is its time limit. Default: DefaultTimeout.
	Timeout time.Duration
	// Retry is the policy for failures of this step. Default: the definition's policy.
	Retry retry.Policy
}

// Stored is a stored definition, without its secrets.
type Stored struct {
	Definition
	Created, Updated time.Time
	// Revision identifies the stored definition, including its secrets. It changes
	// whenever any of them changes.
	Revision string
	// Generated is the secret that was generated for a new definition. It is returned
	// only by the Put that generated it.
	Generated string
}

// Options configure a Registry. The zero value of every field is its default.
type Options struct {
	// Allow lists non-public endpoints that may be reached: prefixes (10.1.0.0/16),
	// addresses, hosts (orders.internal) and all hosts below a domain (*.internal).
	// Default: none.
	Allow []string
	// Poll is the interval at which the registry checks for changes by other processes.
	// Where the database supports it, changes also wake the registry. Default: 2 seconds.
	Poll time.Duration
	// KeepQueues keeps the queues that Machines serves unchanged. Another process must
	// then serve the queues that definitions name. Default: this process serves the queue
	// of every stored definition, with fsm.DefaultConcurrency.
	KeepQueues bool
	// Random is the source of secrets. Default: the system's source.
	Random io.Reader
	// OnError receives background errors. Default: log them.
	OnError func(error)
}

// Registry stores definitions and keeps the definitions of this process up to date. It is
// safe for concurrent use.
type Registry struct {
	eng      *perdure.Engine
	rt       *host.Runtime
	machines *fsm.Machines
	options  Options
	client   *egress.Client
	sender   *webhook.Sender

	loading sync.Mutex // at most one Load at a time
	mu      sync.RWMutex
	known   map[key]loaded

	cancel  context.CancelFunc
	running sync.WaitGroup
}

type key struct {
	name    string
	version int
}

// loaded is a definition that this process runs.
type loaded struct {
	Definition
	secrets []webhook.Secret
	updated time.Time
}

// New returns the registry of an engine. A process that runs no workers passes nil
// machines.
func New(eng *perdure.Engine, machines *fsm.Machines, options *Options) (*Registry, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	o := options.withDefaults()
	if o.Poll < 0 {
		return nil, fault.Invalidf("Options.Poll", "must not be negative, got %v", o.Poll)
	}
	client, err := egress.New(&egress.Options{Allow: o.Allow, Timeout: MaxTimeout, MaxAnswer: MaxMessage})
	if err != nil {
		return nil, err
	}
	rt := host.Of(eng)
	return &Registry{
		eng: eng, rt: rt, machines: machines, options: o, client: client, sender: webhook.NewSender(client, rt.Clock), known: map[key]loaded{},
	}, nil
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Poll == 0 {
		options.Poll = 2 * time.Second
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("remote definitions not loaded", "error", err) }
	}
	return options
}

// withDefaults fills in the defaults of a definition.
func (d Definition) withDefaults() Definition {
	if d.Queue == "" {
		d.Queue = fsm.DefaultQueue
	}
	if d.Retry.IsZero() {
		d.Retry = fsm.DefaultRetry
	}
	steps := make([]Step, len(d.Steps))
	for i, s := range d.Steps {
		if s.URL == "" {
			s.URL = d.URL
		}
		if s.Timeout == 0 {
			s.Timeout = DefaultTimeout
		}
		steps[i] = s
	}
	d.Steps = steps
	return d
}

func (d Definition) step(name string) (Step, bool) {
	for _, s := range d.Steps {
		if s.Name == name {
			return s, true
		}
	}
	return Step{}, false
}

func (d Definition) names() []string {
	names := make([]string, len(d.Steps))
	for i, s := range d.Steps {
		names[i] = s.Name
	}
	return names
}

func (d Definition) what() string { return fmt.Sprintf("fsm %s version %d", d.Name, d.Version) }
