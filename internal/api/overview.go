package api

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Overview has the amount of work and the rate at which it is finished.
type Overview struct {
	Now    Time            `json:"now"`
	Cap    int             `json:"cap" doc:"Limit of the counts. A greater number means that there are more."`
	Kinds  []KindOverview  `json:"kinds" nullable:"false"`
	Queues []QueueOverview `json:"queues" nullable:"false" doc:"Queues of instances that have work."`
	// Unserved is not empty during an outage or an unfinished deployment.
	Unserved []Unserved `json:"unserved" nullable:"false" doc:"Unserved work: due for at least a minute, and not served by any process with a heartbeat within 30 seconds. Also instances with the status no_worker, and schedules whose definition is not served."`
	Paused   []Pause    `json:"paused" nullable:"false" doc:"What is paused: no process claims it."`
	Horizon  *Horizon   `json:"horizon,omitempty" doc:"What has kept PostgreSQL from removing deleted rows for at least a minute."`
	Series   Series     `json:"series"`
	Cluster  string     `json:"cluster,omitempty" doc:"State of the database node of the responding process in its Galera cluster. Omitted if the database is not a cluster."`
}

// KindOverview has the amount of work of one kind.
type KindOverview struct {
	Kind        string         `json:"kind" enum:"instances,hooks,tasks,alarms,actors,schedules"`
	Due         int            `json:"due" doc:"Number of due work items."`
	Scheduled   int            `json:"scheduled" doc:"Number of work items that are due later."`
	Running     int            `json:"running"`
	Waiting     int            `json:"waiting" doc:"Number of work items that wait for a signal, a child or their turn."`
	Failed      int            `json:"failed" doc:"Number of dead letters."`
	Total       int            `json:"total,omitempty" doc:"Number of all actors or schedules."`
	PerMinute   float64        `json:"per_minute" doc:"Throughput: work items finished per minute."`
	OldestDueAt Time           `json:"oldest_due_at,omitzero"`
	Statuses    map[string]int `json:"statuses" nullable:"false"`
	Capped      []string       `json:"capped" nullable:"false" doc:"Statuses whose counts reached the limit."`
}

// QueueOverview has the amount of work of one queue.
type QueueOverview struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Due         int    `json:"due"`
	OldestDueAt Time   `json:"oldest_due_at,omitzero"`
}

// Series has the finished work by interval.
type Series struct {
	From       Time             `json:"from" doc:"End of the first interval."`
	Step       Duration         `json:"step"`
	Throughput map[string][]int `json:"throughput" nullable:"false" doc:"Number of finished work items of each kind, including failed ones."`
	Failures   []int            `json:"failures" nullable:"false"`
	Backlog    []int            `json:"backlog" nullable:"false" doc:"Number of due work items at the end of each interval."`
	Latency    Latency          `json:"latency_ms" doc:"Time from the due time to the start, in milliseconds."`
}

// Latency has the wait times of work by interval: the median, the 95th and the 99th
// percentile.
type Latency struct {
	P50 []float64 `json:"p50" nullable:"false"`
	P95 []float64 `json:"p95" nullable:"false"`
	P99 []float64 `json:"p99" nullable:"false"`
}

type overviewInput struct {
	Range string `query:"range" enum:"15m,1h,24h" default:"15m" doc:"Time range of the series."`
}

// steps are the intervals of a series, by its range.
var steps = map[string]struct{ window, step time.Duration }{
	"15m": {15 * time.Minute, inspect.SampleEvery}, "1h": {time.Hour, 30 * time.Second}, "24h": {24 * time.Hour, 10 * time.Minute},
}

func (a *API) getOverview(ctx context.Context, in *overviewInput) (*One[Overview], error) {
	all, err := a.inspect.Overview(ctx)
	if err != nil {
		return nil, err
	}
	now := a.rt.Clock.Now().UTC()
	o := Overview{Now: Time(now), Cap: inspect.Cap, Kinds: make([]KindOverview, len(all.Kinds)), Queues: []QueueOverview{}}
	for i, k := range all.Kinds {
		o.Kinds[i] = showKind(k)
	}
	for _, q := range all.Queues {
		o.Queues = append(o.Queues, QueueOverview{Kind: store.InstanceKind, Name: q.Name, Due: q.Due, OldestDueAt: Time(q.OldestDue)})
	}
	if o.Unserved, err = a.unserved(ctx); err != nil {
		return nil, err
	}
	if o.Paused, err = a.pauses(ctx); err != nil {
		return nil, err
	}
	if o.Horizon, err = a.horizon(ctx); err != nil {
		return nil, err
	}
	r := steps[in.Range]
	from := now.Add(-r.window).Truncate(r.step)
	samples, err := a.inspect.Samples(ctx, from.Add(-time.Microsecond)) // includes a sample at exactly from
	if err != nil {
		return nil, err
	}
	o.Series = series(samples, from, now, r.step)
	waits, err := a.inspect.Waits(ctx, now.Add(-r.window))
	if err != nil {
		return nil, err
	}
	o.Series.Latency = latency(waits, from, r.step, len(o.Series.Backlog))
	o.rates(samples, now)
	o.Cluster, err = a.cluster(ctx)
	return one(o), err
}

// cluster describes the cluster of the database and the state of its node.
func (a *API) cluster(ctx context.Context) (string, error) {
	db, ok := a.rt.DB.(sqldb.Clustered)
	if !ok {
		return "", nil
	}
	state, ok, err := db.ClusterState(ctx)
	if err != nil || !ok || state.Problem == "" {
		return state.Found, err
	}
	return state.Found + ": " + state.Problem, nil
}

func showKind(k inspect.Overview) KindOverview {
	shown := KindOverview{
		Kind: k.Kind, Due: k.Due, Scheduled: k.Scheduled, Running: k.Running, Waiting: k.Waiting, Failed: k.Failed, Total: k.Total,
		OldestDueAt: Time(k.OldestDue), Statuses: k.Statuses, Capped: []string{},
	}
	for status, n := range k.Statuses {
		if n > inspect.Cap {
			shown.Capped = append(shown.Capped, status)
		}
	}
	slices.Sort(shown.Capped)
	return shown
}

// recent is the period over which a rate is computed.
const recent = 3 * time.Minute

// rates sets the rates of recently finished work.
func (o *Overview) rates(samples []store.Sample, now time.Time) {
	for i := range o.Kinds {
		n := 0
		for _, s := range samples {
			if s.Kind == o.Kinds[i].Kind && now.Sub(s.At) < recent {
				n += s.Finished + s.Failed
			}
		}
		o.Kinds[i].PerMinute = math.Round(float64(n)/recent.Minutes()*10) / 10
	}
}

func newest(samples []store.Sample) (at time.Time) {
	for _, s := range samples {
		if s.At.After(at) {
			at = s.At
		}
	}
	return at
}

// series sums samples by interval. Intervals without samples are 0. The last interval is
// left out until all its samples are taken, because it would look as if work had stopped.
func series(samples []store.Sample, from, now time.Time, step time.Duration) Series {
	n := int(now.Sub(from)/step) + 1
	if end := from.Add(time.Duration(n) * step); n > 1 && newest(samples).Before(end.Add(-inspect.SampleEvery)) {
		n--
	}
	s := Series{From: Time(from), Step: Duration(step), Throughput: map[string][]int{}, Failures: make([]int, n), Backlog: make([]int, n)}
	for _, v := range samples {
		i := int(v.At.Sub(from) / step)
		if i < 0 || i >= n {
			continue
		}
		if s.Throughput[v.Kind] == nil {
			s.Throughput[v.Kind] = make([]int, n)
		}
		s.Throughput[v.Kind][i] += v.Finished + v.Failed
		s.Failures[i] += v.Failed
		s.Backlog[i] += v.Due
	}
	return s
}

// Upcoming is work with a future due time.
type Upcoming struct {
	Kind    string            `json:"kind" enum:"instance,schedule,hook,task,alarm,timer"`
	ID      string            `json:"id"`
	Name    string            `json:"name" doc:"Definition, hook, task type, alarm type or actor type."`
	Why     string            `json:"why" doc:"Effect at the due time."`
	DueAt   Time              `json:"due_at"`
	Link    Link              `json:"link" doc:"Owner of the item."`
	Actions map[string]string `json:"actions,omitempty" doc:"Routes that move, skip or fire the item with a POST."`
}

// Link names a resource of the API.
type Link struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// UpcomingList is upcoming work, by due time.
type UpcomingList struct {
	Now  Time       `json:"now"`
	Data []Upcoming `json:"data" nullable:"false"`
	More bool       `json:"more" doc:"True if there are more items than the limit."`
}

type upcomingInput struct {
	Limit int       `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Until time.Time `query:"until" doc:"End of the forecast. Default: without limit."`
	Kind  string    `query:"kind" enum:"instance,schedule,hook,task,alarm,timer"`
}

// singular has the singular names of the kinds of upcoming work. A timer is an alarm that
// belongs to an actor's statechart.
var singular = map[string]string{
	store.InstanceKind: "instance", store.ScheduleKind: "schedule", store.HookKind: "hook", store.TaskKind: "task", store.AlarmKind: "alarm",
}

func (a *API) listUpcoming(ctx context.Context, in *upcomingInput) (*One[UpcomingList], error) {
	kind := ""
	for plural, name := range singular {
		if name == in.Kind || in.Kind == "timer" && name == "alarm" {
			kind = plural
		}
	}
	found, more, err := a.inspect.Upcoming(ctx, kind, in.Until, in.Limit)
	if err != nil {
		return nil, err
	}
	list := UpcomingList{Now: Time(a.rt.Clock.Now()), Data: []Upcoming{}, More: more}
	for _, u := range found {
		if shown := showUpcoming(u); in.Kind == "" || shown.Kind == in.Kind {
			list.Data = append(list.Data, shown)
		}
	}
	return one(list), nil
}

// latency sums wait times into n intervals. Intervals in which no work started are 0.
func latency(waits []inspect.Waits, from time.Time, step time.Duration, n int) Latency {
	sums := make([]histogram.Counts, n)
	for _, w := range waits {
		if i := int(w.At.Sub(from) / step); i >= 0 && i < n {
			sums[i] = sums[i].Plus(w.Counts)
		}
	}
	at := func(q float64) []float64 {
		values := make([]float64, n)
		for i, sum := range sums {
			values[i] = math.Round(float64(sum.Quantile(q).Microseconds())/10) / 100
		}
		return values
	}
	return Latency{P50: at(0.5), P95: at(0.95), P99: at(0.99)}
}
