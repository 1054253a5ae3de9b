// Package doctor checks a database for inconsistencies. It reports what is wrong, what that
// means, and what to do.
//
// It only reads. Every rule about Perdure's own tables is a statement that returns its
// violations, so that it can also be run by hand.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// MaxFindings is the maximum number of findings that are reported for a check.
	MaxFindings = 20
	// expired is the time after which a process should have returned an expired claim.
	expired = 10 * time.Minute
	// overdue is the time after which a process should have claimed due work.
	overdue = time.Hour
	// idle is the time within which a consumer should have moved.
	idle = 7 * 24 * time.Hour
)

// Finding is one problem that a check has found.
type Finding struct {
	// ID is the id of the affected item, if it has one.
	ID     string `json:"id,omitempty"`
	Detail string `json:"detail"`
}

// Result is the result of a check.
type Result struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	// Found is the observed value, for checks of settings.
	Found    string    `json:"found,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// Total is the number of findings, of which the first are listed.
	Total int `json:"total,omitempty"`
	// Means and Do are set if there are findings.
	Means string `json:"means,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Options configure a run. The zero value of every field is its default.
type Options struct {
	// NoOutbox skips the check of the outbox, which reads all of it. Default: false.
	NoOutbox bool
	// HeldFor is the age from which a transaction that keeps deleted rows is reported. Default: 5
	// minutes.
	HeldFor time.Duration
	// Replay recomputes the states of actors from their logs. It reports each actor whose log,
	// snapshot or timers do not match, and returns the number of actors. Default: actors are not
	// replayed.
	Replay func(ctx context.Context, found func(actor, problem string)) (int, error)
	// Progress is called with the name of every check before it runs. Default: not called.
	Progress func(name string)
}

// examination is one run.
type examination struct {
	eng     *perdure.Engine
	rt      *host.Runtime
	options Options
	results []Result
}

// Run runs all checks that the database supports.
func Run(ctx context.Context, eng *perdure.Engine, options Options) ([]Result, error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	x := &examination{eng: eng, rt: host.Of(eng), options: options}
	x.add("migrations", "up to date") // the engine is open
	for _, s := range x.steps() {
		options.Progress(s.name)
		if err := s.run(ctx); err != nil {
			if hopeless(ctx, err) {
				return x.results, fmt.Errorf("check %s: %w", s.name, err)
			}
			x.unread(s.name, err)
		}
	}
	return x.results, nil
}

// NotMigrated returns the result for a database that could not be opened because migrations
// are missing. It returns false if err has another cause.
func NotMigrated(err error) ([]Result, bool) {
	if !errors.Is(err, fault.ErrNotMigrated) {
		return nil, false
	}
	x := &examination{}
	x.add("migrations", "", Finding{Detail: err.Error()})
	return x.results, true
}

// Worst returns the worst severity of results.
func Worst(results []Result) Severity {
	worst := OK
	for _, r := range results {
		if r.Severity == Broken || r.Severity == Warning && worst == OK {
			worst = r.Severity
		}
	}
	return worst
}

// add records the result of a check.
func (x *examination) add(name, found string, findings ...Finding) *Result {
	r := Result{Name: name, Severity: OK, Found: found, Total: len(findings), Findings: findings[:min(len(findings), MaxFindings)]}
	if len(findings) > 0 {
		c := find(name)
		r.Severity, r.Means, r.Do = c.Severity, c.Means, c.Do
	}
	x.results = append(x.results, r)
	return &x.results[len(x.results)-1]
}

// step is a part of a run. Its name is the name of its check, or of one of its checks.
type step struct {
	name string
	run  func(context.Context) error
}

// steps returns the parts of a run in their order.
func (x *examination) steps() []step {
	all := []step{{"version", x.settings}, {"schema", x.schema}, {"horizon", x.horizon}, {"fsm_place", x.rules}, {"task_rights", x.rights}}
	if x.rt.Store.Watches() {
		all = append(all, step{"fsm_unserved", x.unserved}, step{"schedule_unread", x.schedules}, step{"fsm_state", x.states}, step{"fsm_policy", x.policies},
			step{"remote_definition", x.remotes}, step{"actor_checksum", x.sums}, step{"actor_unserved", x.unservedTypes}, step{"actor_replay", x.replays})
	}
	return append(all, step{"keys", x.keys}, step{"outbox", x.outbox}, step{"consumers", x.consumers}, step{"dead_letters", x.deadLetters}, step{"audit_log", x.audit})
}

// hopeless reports whether an error leaves no hope for further checks: the caller has stopped
// the run, or the database does not answer.
func hopeless(ctx context.Context, err error) bool { return ctx.Err() != nil || sqldb.IsTransient(err) }

// unread records that a check could not run, because what it reads is damaged.
func (x *examination) unread(name string, err error) {
	x.results = append(x.results, Result{
		Name: name, Severity: Broken, Total: 1, Findings: []Finding{{Detail: "the check could not run: " + err.Error()}},
		Means: "What the check reads is damaged or missing, so it is not known whether the rule holds.",
		Do:    "See the other findings, first those of `schema` and `integrity`, then run `perdure doctor` again.",
	})
}

// settings runs the driver's checks of its database.
func (x *examination) settings(ctx context.Context) error {
	driver, ok := x.rt.DB.(sqldb.Diagnoser)
	if !ok {
		return nil
	}
	all, err := driver.Diagnose(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Problem == "" {
			x.add(d.Name, d.Found)
			continue
		}
		r := x.add(d.Name, d.Found, Finding{Detail: d.Problem})
		if !d.Broken {
			r.Severity = Warning
		}
	}
	return nil
}

// rules finds violations of the rules. The rules run in one snapshot, unless one of them fails.
func (x *examination) rules(ctx context.Context) error {
	tx, err := x.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer func() { tx.Rollback() }()
	rules := map[string]store.Rule{}
	for _, r := range store.Rules {
		rules[r.Name] = r
	}
	for _, c := range Checks {
		rule, ok := rules[c.rule]
		if !ok || !x.rt.Store.Has(rule) {
			continue
		}
		x.options.Progress(c.Name)
		err := x.rule(ctx, tx, c, rule)
		if err == nil {
			continue
		}
		if hopeless(ctx, err) {
			return fmt.Errorf("check %s: %w", c.Name, err)
		}
		x.unread(c.Name, err)
		tx.Rollback() // a failed statement ends the transaction on some databases
		if tx, err = x.rt.DB.Begin(ctx, sqldb.Read); err != nil {
			return err
		}
	}
	return nil
}

func (x *examination) rule(ctx context.Context, tx sqldb.Tx, c Check, rule store.Rule) error {
	now := x.rt.Clock.Now()
	before := now.Add(-overdue)
	if c.Name == rule.Kind+"_stuck" {
		before = now.Add(-expired)
	}
	var findings []Finding
	stmt := x.rt.Store.Break(rule, before, func(v store.Violation) {
		findings = append(findings, Finding{ID: v.ID, Detail: v.Detail})
	})
	if err := tx.Run(ctx, stmt); err != nil {
		return err
	}
	x.add(c.Name, "", findings...)
	return nil
}

func (x *examination) outbox(ctx context.Context) error {
	if x.options.NoOutbox {
		return nil
	}
	report, err := x.eng.Outbox().Verify(ctx, nil)
	if err != nil {
		return fmt.Errorf("check the outbox: %w", err)
	}
	var findings []Finding
	for _, p := range report.Problems {
		findings = append(findings, Finding{Detail: p})
	}
	x.add("outbox", fmt.Sprintf("%d entries", report.Entries), findings...)
	return nil
}

func (x *examination) consumers(ctx context.Context) error {
	status, err := x.eng.Outbox().Status(ctx)
	if err != nil {
		return fmt.Errorf("check consumers: %w", err)
	}
	all, err := x.eng.Outbox().Consumers(ctx)
	if err != nil {
		return fmt.Errorf("check consumers: %w", err)
	}
	var findings, ahead []Finding
	if status.PurgedThrough.Compare(status.Last) > 0 {
		ahead = append(ahead, Finding{ID: store.PrunedThrough, Detail: fmt.Sprintf("is %s, the newest entry is %s", status.PurgedThrough, status.Last)})
	}
	for _, c := range all {
		finding, err := x.unservedConsumer(ctx, c)
		if err != nil {
			return err
		}
		findings = append(findings, finding...)
		if c.Position.Compare(status.Last) > 0 {
			ahead = append(ahead, Finding{ID: c.Name, Detail: fmt.Sprintf("is at %s, the newest entry is %s", c.Position, status.Last)})
		}
		if age := x.rt.Clock.Now().Sub(c.Updated); age > idle && c.Position.Compare(status.Last) < 0 {
			findings = append(findings, Finding{ID: c.Name, Detail: "has not moved for " + age.Round(time.Hour).String()})
		}
	}
	x.add("consumers", fmt.Sprintf("%d registered", len(all)), findings...)
	x.add("consumers_ahead", "", ahead...)
	return nil
}

func (x *examination) deadLetters(ctx context.Context) error {
	var findings []Finding
	for _, stmt := range x.rt.Store.Depths(x.rt.Clock.Now(), func(d store.Depth) {
		if d.N > 0 && d.Dead() {
			findings = append(findings, Finding{ID: d.Kind, Detail: fmt.Sprintf("%d %s", d.N, d.Status)})
		}
	}) {
		if err := sqldb.Each(ctx, x.rt.DB, stmt.Row, stmt.SQL, stmt.Args...); err != nil {
			return fmt.Errorf("count dead letters: %w", err)
		}
	}
	x.add("dead_letters", "", findings...)
	return nil
}
