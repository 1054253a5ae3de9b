package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// workload is a row of the report: a rate, or a latency.
type workload struct {
	name    string
	latency bool
}

func (w workload) show(v float64) string {
	if v == 0 {
		return "-"
	}
	if w.latency {
		return time.Duration(v).Round(10 * time.Microsecond).String()
	}
	return fmt.Sprintf("%.0f/s", v)
}

var (
	bulkStart   = workload{name: "bulk start, 1000 a call"}
	drainNoop   = workload{name: "drain of no-op jobs"}
	singleStart = workload{name: "single start"}
	pickUpP50   = workload{name: "pick-up p50", latency: true}
	pickUpP99   = workload{name: "pick-up p99", latency: true}

	workloads = []workload{bulkStart, drainNoop, singleStart, pickUpP50, pickUpP99}
)

type measurement struct {
	workload workload
	value    float64
}

// measureAll runs every workload once.
func measureAll(ctx context.Context, c contestant, o options, results map[string][]measurement) error {
	add := func(w workload, v float64) { results[c.name()] = append(results[c.name()], measurement{w, v}) }
	for _, step := range []struct {
		workload workload
		n        int
		run      func() error
	}{
		{bulkStart, o.jobs, func() error { return c.bulk(ctx, o.jobs) }},
		{drainNoop, o.jobs, func() error { return c.drain(ctx, o.jobs) }},
		{singleStart, o.jobs / 10, func() error { return c.single(ctx, o.clients, o.jobs/10) }},
	} {
		from := time.Now()
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.workload.name, err)
		}
		add(step.workload, float64(step.n)/time.Since(from).Seconds())
	}
	if err := c.drain(ctx, o.jobs/10); err != nil {
		return err
	}
	latencies, err := c.pickUp(ctx, o.pickUps)
	if err != nil || len(latencies) == 0 {
		return err
	}
	slices.Sort(latencies)
	add(pickUpP50, float64(latencies[len(latencies)/2]))
	add(pickUpP99, float64(latencies[len(latencies)*99/100]))
	return nil
}

func median(results map[string][]measurement, name string, w workload) float64 {
	var values []float64
	for _, m := range results[name] {
		if m.workload == w {
			values = append(values, m.value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// fresh makes a database for one contestant.
func fresh(ctx context.Context, server string) (dsn string, drop func(), err error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() {
		_, _ = conn.Exec(ctx, "drop database "+name+" with (force)")
		_ = conn.Close(ctx)
	}, nil
}
