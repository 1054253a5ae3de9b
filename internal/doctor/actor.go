package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// sumPage is the number of snapshots that are read at a time.
const sumPage = 200

// sums compares the snapshots and checkpoints of actors with their checksums and the log.
func (x *examination) sums(ctx context.Context) error {
	var findings []Finding
	note := func(s store.Sum, what string) {
		if reason := s.Fault(); reason != "" {
			findings = append(findings, Finding{ID: s.Type + "/" + s.ID, Detail: fmt.Sprintf("%s%d: %s", what, s.Sequence, reason)})
		}
	}
	err := pages(ctx, x.rt.DB, func(last store.Sum, found func(store.Sum)) sqldb.Stmt {
		return x.rt.Store.ActorSums(last.ActorRef, sumPage, found)
	}, func(s store.Sum) { note(s, "transition ") })
	if err != nil {
		return err
	}
	err = pages(ctx, x.rt.DB, func(last store.Sum, found func(store.Sum)) sqldb.Stmt {
		return x.rt.Store.CheckpointSums(last.ActorRef, last.Sequence, sumPage, found)
	}, func(s store.Sum) { note(s, "checkpoint ") })
	if err != nil {
		return err
	}
	x.add("actor_checksum", "", findings...)
	return nil
}

// pages reads all rows of a statement that returns the next ones after a row. Each page is a
// separate transaction.
func pages(ctx context.Context, db sqldb.DB, next func(last store.Sum, found func(store.Sum)) sqldb.Stmt, found func(store.Sum)) error {
	var last store.Sum
	for {
		n := 0
		page := next(last, func(s store.Sum) {
			n, last = n+1, s
			found(s)
		})
		if err := sqldb.Each(ctx, db, page.Row, page.SQL, page.Args...); err != nil {
			return err
		}
		if n < sumPage {
			return nil
		}
	}
}

// unservedTypes finds types of active actors that are neither stored nor served by a live
// process. Programs that embed the library send no heartbeats, so it finds nothing if no process
// does.
func (x *examination) unservedTypes(ctx context.Context) error {
	var types, served []string
	live, all := false, false
	counts := map[string]int{}
	stmts := []sqldb.Stmt{
		x.rt.Store.ActorTypes(func(name string, n int) {
			types = append(types, name)
			counts[name] = n
		}),
		x.rt.Store.Nodes(x.rt.Now(), func(n store.Node, now time.Time) {
			if n.Draining || !serving.Live(n, now) {
				return
			}
			live = true
			for _, q := range n.Running {
				if q.Kind == "actor" {
					served, all = append(served, q.Serves...), all || q.Serves == nil
				}
			}
		}),
	}
	for _, s := range stmts {
		if err := sqldb.Each(ctx, x.rt.DB, s.Row, s.SQL, s.Args...); err != nil {
			return err
		}
	}
	var findings []Finding
	for _, name := range types {
		if live && !all && !slices.Contains(served, name) {
			findings = append(findings, Finding{ID: name, Detail: fmt.Sprintf("%d active actors of a type that is not stored, and that no live process serves", counts[name])})
		}
	}
	x.add("actor_unserved", "", findings...)
	return nil
}

// replays lets the caller recompute the states of actors from their logs.
func (x *examination) replays(ctx context.Context) error {
	if x.options.Replay == nil {
		return nil
	}
	var findings []Finding
	n, err := x.options.Replay(ctx, func(id, detail string) { findings = append(findings, Finding{ID: id, Detail: detail}) })
	if err != nil {
		return err
	}
	x.add("actor_replay", fmt.Sprintf("%d actors", n), findings...)
	return nil
}
