package task

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
)

// DefaultRetry is the policy for tasks that could not be run to completion, for example
// because a function raised an error: 20 attempts within about two days. A provider's
// failure is not retried by this policy: the error handler records it and the
// supervisor decides.
var DefaultRetry = retry.Default

// Options configure a Worker. The zero value of every field is its default.
type Options struct {
	// Concurrency is the maximum number of tasks that run concurrently in this process.
	// Default: 16.
	Concurrency int
	// Lease is the time for which a claim is valid without a heartbeat. It is renewed
	// while the task runs. One second to one hour. Default: 30 seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which a task is quarantined. After two
	// crashes a task is a suspect. Suspects run in batches whose size halves with every
	// further crash. Only a task that crashes alone is quarantined. At least 2.
	// Default: 5.
	MaxCrashes int
	// Retry is the policy for tasks that could not be run to completion. Default:
	// DefaultRetry.
	Retry retry.Policy
	// Timeout is the time limit for senders. Default: 1 minute.
	Timeout time.Duration
	// Retention is the time for which done and cancelled tasks are kept, on PostgreSQL
	// at least an hour. Negative: no limit. Default: 24 hours.
	Retention time.Duration
	// DeadRetention is the time for which dead letters are kept: failed and quarantined
	// tasks. On PostgreSQL it is at least an hour. Negative: no limit. Default: 30
	// days.
	DeadRetention time.Duration
	// Senders are the senders by task type. They run outside transactions. Default:
	// email and sms are written to files, see Files.
	Senders map[string]Sender
	// SinkDir is the directory for the files of the default senders. Default:
	// data/sent.
	SinkDir string
	// Functions are the functions of business processes, by name, on SQLite. The
	// functions of comms are predefined. On PostgreSQL the functions are in the
	// database, and this field is ignored.
	Functions map[string]Function
	// OnError receives background errors: of heartbeats and of commits of outcomes.
	// Default: log them.
	OnError func(error)
	// OnCrash is called for every crash of a task. Default: log it.
	OnCrash func(perdure.Crash)
	// Random returns numbers in [0, 1) for the jitter of retries.
	// Default: a random source.
	Random func() float64
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	edge.Default(&options.Concurrency, 16)
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Timeout, time.Minute)
	edge.Default(&options.Retention, 24*time.Hour)
	edge.Default(&options.DeadRetention, core.DeadRetention)
	edge.Default(&options.SinkDir, "data/sent")
	if options.Retry.IsZero() {
		options.Retry = DefaultRetry
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("task processing failed", "error", err) }
	}
	if options.OnCrash == nil {
		options.OnCrash = logCrash
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	senders := map[string]Sender{"email": Files(options.SinkDir), "sms": Files(options.SinkDir)}
	maps.Copy(senders, options.Senders)
	options.Senders = senders
	functions := maps.Clone(commsFunctions)
	maps.Copy(functions, options.Functions)
	options.Functions = functions
	return options
}

func logCrash(c perdure.Crash) {
	slog.Warn("task lease expired", "id", c.ID, "type", c.Name, "crashes", c.Crashes, "quarantined", c.Quarantined)
}

// The names that the PostgreSQL domain and function runner accept.
var (
	typeName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	functionName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}[.][a-z_][a-z0-9_]{0,62}$`)
)

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 1000:
		return fault.Invalidf("Options.Concurrency", "must be between 1 and 1,000, got %d", o.Concurrency)
	case o.Lease < time.Second || o.Lease > time.Hour:
		return fault.Invalidf("Options.Lease", "must be between 1s and 1h, got %v", o.Lease)
	case o.MaxCrashes < 2:
		return fault.Invalidf("Options.MaxCrashes", "must be at least 2, got %d", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("Options.Timeout", "must not be negative, got %v", o.Timeout)
	}
	for name, sender := range o.Senders {
		if !typeName.MatchString(name) || name == functionType || sender == nil {
			return fault.Invalidf("Options.Senders", "must have a sender and a valid task type, got %q", name)
		}
	}
	for name, fn := range o.Functions {
		if !functionName.MatchString(name) || fn == nil {
			return fault.Invalidf("Options.Functions", "must have a function and a valid name, got %q", name)
		}
	}
	return o.Retry.Validate()
}
