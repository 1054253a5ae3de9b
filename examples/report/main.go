// Report creates a report every night: one part for each region, concurrently, and then the
// whole report. A failed part is retried separately. A part that fails permanently is named
// in the report.
//
// It sets the schedule on a database in memory and fires it once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// Report is the state of a report.
type Report struct {
	Regions []string `json:"regions"`
}

// Reports is the definition of the whole report, and Parts the definition of one region's
// part.
var (
	Reports = fsm.Define("report", 1, nil, fsm.Step("split", split, nil), fsm.Step("join", join, nil))
	Parts   = fsm.Define("report-part", 1, &fsm.DefinitionOptions[string]{Retry: retry.Fixed(3, 10*time.Millisecond), Queue: "reports"}, fsm.Step("count", count, nil))
)

// split starts a child for each region. All children are started in one commit. The report
// waits for all of them, for six hours at most.
func split(_ context.Context, run *fsm.Run[Report]) (fsm.Outcome, error) {
	var parts []fsm.ChildSpec
	for _, region := range run.State.Regions {
		parts = append(parts, fsm.ChildOf(Parts, region, nil))
	}
	return run.Spawn(parts...).Then("join").Within(6 * time.Hour), nil
}

// count creates the part of a region.
func count(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
	switch {
	case run.State == "west" && run.Attempt == 1:
		return fsm.Outcome{}, errors.New("the warehouse does not answer") // succeeds at the next attempt
	case run.State == "south":
		return fsm.Outcome{}, errors.New("the warehouse has burnt down")
	}
	return run.Done(fmt.Sprintf("%s %d", run.State, 100*len(run.State))), nil
}

// join combines the parts, in the order in which they were started.
func join(ctx context.Context, run *fsm.Run[Report]) (fsm.Outcome, error) {
	parts, err := run.Children(ctx)
	if err != nil {
		return fsm.Outcome{}, err
	}
	var lines []string
	for i, p := range parts {
		line := run.State.Regions[i] + " is missing: " + p.Error
		if p.Status == fsm.Done {
			if err := p.Decode(&line); err != nil {
				return fsm.Outcome{}, err
			}
		}
		lines = append(lines, line)
	}
	return run.Done(strings.Join(lines, "; ")), nil
}

// schedule creates a report at two in the morning in Berlin, also on days with a clock
// change. The unique key prevents a start while yesterday's report is still running.
func schedule(ctx context.Context, eng *perdure.Engine) error {
	return fsm.SetSchedule(ctx, eng, "nightly-report", "0 2 * * *", Reports,
		Report{Regions: []string{"north", "west", "south"}},
		&fsm.ScheduleOptions{Zone: "Europe/Berlin", Start: &fsm.StartOptions{Unique: "nightly"}})
}

// now creates the report without waiting for the night.
func now(ctx context.Context, eng *perdure.Engine, machines *fsm.Machines) (string, error) {
	var started *fsm.Started
	err := eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		started, err = machines.FireScheduleIn(tx, "nightly-report")
		return err
	})
	if err != nil {
		return "", err
	}
	return started.ID, nil
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	machines, err := fsm.New(eng, &fsm.Options{Queues: map[string]int{"default": 4, "reports": 2}})
	if err != nil {
		return err
	}
	if err := machines.Register(Reports, Parts); err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(machines, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	defer func() { _ = dispatcher.Stop(ctx) }()

	if err := schedule(ctx, eng); err != nil {
		return err
	}
	id, err := now(ctx, eng, machines)
	if err != nil {
		return err
	}
	report, err := machines.Wait(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", report.Status, report.Result)
	return nil
}
