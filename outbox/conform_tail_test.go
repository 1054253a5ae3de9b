package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// fast polls often, so that tests need not wait.
var fast = &outbox.TailOptions{Poll: 5 * time.Millisecond}

// tail collects n ids of a Tail.
func tail(ctx context.Context, eng *perdure.Engine, after outbox.Stamp, options *outbox.TailOptions, n int) (got []string, err error) {
	for entry, err := range eng.Outbox().Tail(ctx, after, options) {
		if err != nil {
			return got, err
		}
		if got = append(got, entry.Payload.Mutations[0].ExternalID); len(got) == n {
			return got, nil
		}
	}
	return got, errors.New("the tail has ended")
}

func (Conformance) TailStreamsThePastAndThenWaits(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b", "c")
	type result struct {
		ids []string
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := tail(enginetest.Context(t), eng, at(1), &outbox.TailOptions{Batch: 1, Poll: time.Hour}, 4)
		done <- result{got, err}
	}()
	create(t, eng, "d", "e") // seen at once, the poll is an hour away
	r := <-done
	enginetest.NoError(t, r.err)
	if !slices.Equal(r.ids, []string{"b", "c", "d", "e"}) {
		t.Errorf("the tail is %v", r.ids)
	}
}

// TailSeesTheEntriesOfOtherProcesses: a second engine is as good as one.
func (Conformance) TailSeesTheEntriesOfOtherProcesses(t *testing.T, db enginetest.Database) {
	reader, writer := db.Open(t, options()), db.Open(t, options())
	const writers, each = 4, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				err := writer.Update(context.Background(), func(tx *perdure.Tx) error {
					if _, err := tx.Create(users, schema.Values{"id": fmt.Sprint(w, ".", i), "name": "x"}); err != nil {
						return err
					}
					if i%5 == 0 {
						return errors.New("rolled back")
					}
					return nil
				})
				if (err != nil) != (i%5 == 0) {
					t.Error(err)
				}
			}
		})
	}
	want := uint64(1)
	for entry, err := range reader.Outbox().Tail(enginetest.Context(t), outbox.Stamp{}, fast) {
		enginetest.NoError(t, err)
		if entry.Stamp != at(want) {
			t.Fatalf("entry %s comes when %s is due", entry.Stamp, at(want))
		}
		if want++; want > writers*each*4/5 {
			break
		}
	}
	all.Wait()
}

func (Conformance) TailEndsWithItsContextAndWithTheEngine(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, end := range []func(){cancel, func() { enginetest.NoError(t, eng.Close()) }} {
		first, done := make(chan struct{}), make(chan error, 1)
		go func() {
			for _, err := range eng.Outbox().Tail(ctx, outbox.Stamp{}, &outbox.TailOptions{Poll: time.Hour}) {
				if err != nil {
					done <- err
				}
				close(first)
			}
			done <- nil
		}()
		<-first
		end()
		enginetest.NoError(t, <-done) // without an error
		ctx = context.Background()
	}
	for range eng.Outbox().Tail(t.Context(), outbox.Stamp{}, nil) {
		t.Error("the tail of a closed engine has an entry")
	}
}

func (Conformance) TailReportsACursorThatCannotBeServed(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	create(t, eng, "a", "b")
	_, err := tail(t.Context(), eng, at(3), fast, 1)
	if e := enginetest.As[*outbox.DivergedError](t, err); e.Cursor != at(3) || e.Common != at(2) {
		t.Errorf("the error is %+v", e)
	}
	_, err = eng.Outbox().Purge(t.Context(), 0)
	enginetest.NoError(t, err)
	_, err = tail(t.Context(), eng, at(1), fast, 1)
	enginetest.As[*outbox.GapError](t, err)
}
