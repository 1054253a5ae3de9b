//go:build ignore

package main

import (
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// fill stores the work of a morning in a database.
func fill(dsn string) {
	morning := noon.Add(-4 * time.Hour)
	keeper := open(dsn, morning, "main", must(perdure.ParseKeys(key)))
	keeper.trigger("main", "failed secret", "", hook.TriggerOptions{Retry: retry.None()})
	keeper.drain(morning)

	p := open(dsn, morning, "main", nil)
	check(p.eng.Update(ctx, func(tx *perdure.Tx) error {
		must(tx.Create(accounts, schema.Values{"id": "ada", "owner": "Ada", "balance": 100}))
		must(tx.Create(accounts, schema.Values{"id": "bea", "owner": "Bea"}))
		return nil
	}))
	check(p.eng.Update(ctx, func(tx *perdure.Tx) error { return tx.Update(accounts, "bea", schema.Values{"balance": 7}) }))

	fillEnded(p, morning)
	fillPoison(dsn, morning)
	fillPending(p, keeper)
	fillRunning(dsn)
}

// fillEnded stores finished work, and work that waits for its next attempt.
func fillEnded(p *process, morning time.Time) {
	admin := hook.NewAdmin(p.eng)
	p.both("main", "failed", hook.TriggerOptions{Retry: retry.Fixed(2, time.Hour)})
	p.both("main", "completed", hook.TriggerOptions{Priority: hook.High})
	p.both("main", "late completed", hook.TriggerOptions{Retry: retry.Fixed(5, time.Hour)})
	p.both("main", "retrying", hook.TriggerOptions{Retry: retry.Fixed(5, 3*time.Hour), Priority: hook.Low})
	for _, id := range p.both("other", "cancelled", hook.TriggerOptions{}) {
		check(admin.Cancel(ctx, id))
	}
	if p.whole {
		p.schedule("main", "failed", alarm.ScheduleOptions{Retry: retry.Fixed(2, time.Hour)})
		p.schedule("main", "completed", alarm.ScheduleOptions{})
		p.schedule("main", "recurring", alarm.ScheduleOptions{Every: time.Hour, At: morning})
		p.schedule("main", "retrying", alarm.ScheduleOptions{Retry: retry.Fixed(5, 3*time.Hour)})
		p.start("failed", fsm.StartOptions{})
		p.start("done", fsm.StartOptions{})
		check(p.fsm.Cancel(ctx, p.start("cancelled", fsm.StartOptions{}), "not wanted"))
		p.enqueue("main", "completed", task.EnqueueOptions{})
		p.enqueue("db_function", "failed", task.EnqueueOptions{})
		check(must(task.NewAdmin(p.eng)).Cancel(ctx, p.enqueue("main", "cancelled", task.EnqueueOptions{})))
		p.spawn("main", "done sent", "SEND")
		p.spawn("main", "done paid", "PAY")
		p.spawn("main", "failed sent", "SEND")
		p.spawn("main", "failed paid", "PAY")
		check(p.actors.Stop(ctx, p.spawn("main", "stopped", "WAIT"), system))
	}
	p.drain(morning)
	p.drain(morning.Add(time.Hour))
	p.clock.Set(morning.Add(3 * time.Hour))
	if p.whole {
		p.start("retrying", fsm.StartOptions{})
		p.start("awaiting signal", fsm.StartOptions{})
		p.start("awaiting timeout", fsm.StartOptions{Unique: "one"})
		p.start("awaiting deadline", fsm.StartOptions{Deadline: 5 * time.Hour})
		p.start("parent", fsm.StartOptions{ID: shared})
		p.start("awaiting first", fsm.StartOptions{Partition: "key"})
		p.start("ready second", fsm.StartOptions{Partition: "key"})
		p.spawn("main", "waiting", "WAIT")
		p.spawn("main", "retrying sent", "SEND")
		p.spawn("main", "retrying paid", "PAY")
	}
	p.drain(morning.Add(3 * time.Hour))
}

// fillPoison stores work that crashed three processes and is quarantined, and work that
// crashed two and is a suspect. A process runs one suspect at a time, so each has its own
// processes.
func fillPoison(dsn string, morning time.Time) {
	for _, label := range []string{"poison new", "poison chosen", "suspect new", "suspect chosen", "poison alarm", "suspect alarm", "poison instance"} {
		at := morning.Add(-16 * time.Hour)
		p := open(dsn, at, label, nil)
		word, kind, _ := strings.Cut(label, " ")
		if !p.whole && (kind == "alarm" || kind == "instance") {
			continue
		}
		switch kind {
		case "new":
			p.trigger(label, label, "", hook.TriggerOptions{})
		case "chosen":
			p.trigger(label, label, "my "+word, hook.TriggerOptions{})
		case "alarm":
			p.schedule(label, label, alarm.ScheduleOptions{})
		case "instance":
			p.start(label, fsm.StartOptions{Queue: label})
		}
		deaths, last := 3, label
		if word == "suspect" {
			deaths, last = 2, "reader" // it has no handler for the work
		}
		for n := range deaths {
			if n > 0 {
				p = open(dsn, at, label, nil)
			}
			p.die(1)
			at = at.Add(4 * time.Hour)
		}
		p = open(dsn, at, last, nil)
		p.drain(at)
		check(p.eng.Close())
	}
}

// fillPending stores work that is due, and work that is scheduled.
func fillPending(p, keeper *process) {
	p.clock.Set(noon)
	keeper.clock.Set(noon)
	later := noon.Add(2 * time.Hour)
	p.both("main", "pending", hook.TriggerOptions{})
	p.both("main", "urgent", hook.TriggerOptions{Priority: hook.High})
	p.both("main", "scheduled", hook.TriggerOptions{ProcessAt: later})
	p.trigger("main", "pending shared", shared, hook.TriggerOptions{})
	keeper.both("main", "pending secret", hook.TriggerOptions{})
	if !p.whole {
		return
	}
	keeper.schedule("main", "pending secret", alarm.ScheduleOptions{})
	keeper.start("ready secret", fsm.StartOptions{})
	keeper.spawn("main", "pending secret", "PAY")
	p.schedule("main", "pending", alarm.ScheduleOptions{})
	p.schedule("main", "scheduled", alarm.ScheduleOptions{At: later})
	check(p.alarms.Schedule(ctx, alarm.Of("main", "waiting", "owned"), "main", item{"owned"}, &alarm.ScheduleOptions{At: later}))
	p.start("ready", fsm.StartOptions{})
	p.start("scheduled", fsm.StartOptions{At: later})
	p.enqueue("main", "pending", task.EnqueueOptions{})
	p.enqueue("main", "scheduled", task.EnqueueOptions{ScheduledAt: later})
	check(p.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := task.SendEmail(tx, task.Email{From: "shop@example.com", To: "ada@example.com", Subject: "Order", Text: "It is sent."}, nil)
		return err
	}))
	p.spawn("main", "pending sent", "SEND")
	p.spawn("main", "pending paid", "PAY")
	check(fsm.SetSchedule(ctx, p.eng, "hourly", "@every 1h", p.order(), item{"tick"}, nil))
	check(fsm.SetSchedule(ctx, p.eng, "paused", "@every 1h", p.order(), item{"tick"}, &fsm.ScheduleOptions{Paused: true}))
}

// fillRunning stores work whose processes have died: with leases that have not expired, and
// with leases that have.
func fillRunning(dsn string) {
	for _, name := range []string{"live", "dead"} {
		at := noon
		if name == "dead" {
			at = noon.Add(-time.Hour)
		}
		p := open(dsn, at, name, nil)
		works := 2
		p.both(name, name, hook.TriggerOptions{})
		if p.whole {
			works = 7
			p.schedule(name, name, alarm.ScheduleOptions{})
			p.start(name, fsm.StartOptions{Queue: name})
			p.enqueue(name, name, task.EnqueueOptions{})
			p.spawn(name, name+" sent", "SEND")
			p.spawn(name, name+" paid", "PAY")
		}
		p.die(works)
	}
}
