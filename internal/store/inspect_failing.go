package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// FailedAttempt is an attempt that did not succeed.
type FailedAttempt struct {
	Tried
	Step, Error, Worker string
	Ended               time.Time
}

// FailedAttempts returns the statement that reads the newest attempts of instances, hooks and
// alarms that did not succeed, up to limit, and not those that ended before a time.
func (s *Store) FailedAttempts(after time.Time, limit int, found func(FailedAttempt)) sqldb.Stmt {
	return read(s.stmt("FailingAttempts", after, limit), func(a FailedAttempt) {
		a.Ended = a.Ended.UTC()
		found(a)
	}, func(a *FailedAttempt) []any { return []any{&a.Kind, &a.ID, &a.Step, &a.Error, &a.Worker, &a.Ended} })
}

// FailingItem is a hook or an alarm that has failed attempts and is not finished.
type FailingItem struct{ Item, Public, Namespace, Name string }

// FailingHooks returns the statement that finds the hooks that have failed attempts and are not
// finished, among the hooks with the ids of some rows. FailingAlarms does the same with alarms.
func (s *Store) FailingHooks(items []string, found func(FailingItem)) sqldb.Stmt {
	return s.failing("FailingHooks", items, found)
}

// FailingAlarms is FailingHooks for alarms.
func (s *Store) FailingAlarms(items []string, found func(FailingItem)) sqldb.Stmt {
	return s.failing("FailingAlarms", items, found)
}

func (s *Store) failing(name string, items []string, found func(FailingItem)) sqldb.Stmt {
	args := make([]any, len(items))
	for i, item := range items {
		args[i] = item
	}
	text := s.text(name) + "\n  and i.id in (" + placeholdersOf("?"+s.dialect.CastUUID(), len(items)) + ")"
	return read(sqldb.Stmt{SQL: s.complete(text), Args: args}, found, func(i *FailingItem) []any { return []any{&i.Item, &i.Public, &i.Namespace, &i.Name} })
}

// FailingTask is a task that has failed attempts and is not finished, with one of its errors.
type FailingTask struct {
	ID, Type, Error string
	At              time.Time
}

// FailingTasks returns the statement that reads the newest errors of tasks that are not finished. It
// reads up to limit errors, and none before a time. Databases without tasks have none.
func (s *Store) FailingTasks(after time.Time, limit int, found func(FailingTask)) []sqldb.Stmt {
	if s.text("FailingTasks") == "" {
		return nil
	}
	return []sqldb.Stmt{read(s.stmt("FailingTasks", after, limit), func(t FailingTask) {
		t.At = t.At.UTC()
		found(t)
	}, func(t *FailingTask) []any { return []any{&t.ID, &t.Type, &t.Error, &t.At} })}
}
