package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
)

// named is work with names that share the slots of one worker.
type named struct {
	mu       sync.Mutex
	due      []*core.Claim
	worker   *core.Worker
	begun    map[string]int // by name
	ran      int
	returned int
	hangs    chan struct{} // the work of names in hanging ends when it is closed
	hanging  map[string]bool
	failing  map[string]bool
}

func newNamed(concurrency int) *named {
	n := &named{begun: map[string]int{}, hangs: make(chan struct{}), hanging: map[string]bool{}, failing: map[string]bool{}}
	n.worker = core.NewWorker(core.Kind{
		Name: "row", Claim: n.claim, Begin: n.begin, Release: n.release,
		Extend: func(context.Context, []*core.Claim, time.Duration) ([]*core.Claim, error) { return nil, nil },
		Next:   func(context.Context) (time.Duration, bool, error) { return 0, false, nil },
	}, core.Options{Concurrency: concurrency, Lease: lease, SweepEvery: time.Hour, Clock: clock.System, OnError: func(err error) { panic(err) }})
	return n
}

// add makes work of a name due. Its system is the part after the @, if any.
func (n *named) add(count int, name, system string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range count {
		n.due = append(n.due, &core.Claim{ID: fmt.Sprint(len(n.due), name), Name: name, System: system})
	}
}

func (n *named) claim(_ context.Context, limit int, _ time.Duration) (claims []*core.Claim, _ error) {
	held := n.worker.Held()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due = slices.DeleteFunc(n.due, func(c *core.Claim) bool {
		if len(claims) == limit || slices.Contains(held, c.Name) || slices.Contains(held, c.System) {
			return false
		}
		claims = append(claims, c)
		return true
	})
	return claims, nil
}

func (n *named) begin(_ context.Context, c *core.Claim) {
	n.mu.Lock()
	n.begun[c.Name]++
	n.ran++
	hangs, fails := n.hanging[c.Name], n.failing[c.Name]
	n.mu.Unlock()
	if hangs {
		<-n.hangs
	}
	c.Failed = fails
	c.End(nil)
}

func (n *named) release(_ context.Context, claims []*core.Claim) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.returned += len(claims)
	for _, c := range claims {
		n.due = append(n.due, &core.Claim{ID: c.ID, Name: c.Name, System: c.System})
	}
	return nil
}

func (n *named) counts() (begun map[string]int, returned int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	begun = map[string]int{}
	for name, count := range n.begun {
		begun[name] = count
	}
	return begun, n.returned
}

// start claims as a dispatcher does that is woken again and again.
func (n *named) start(t *testing.T) {
	t.Helper()
	for range 10 { // at least 10 of them
		_, err := n.worker.Start(context.Background())
		noError(t, err)
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
	}
}

func TestWorkThatHangsLeavesSlotsToOthers(t *testing.T) {
	for _, hanging := range []int{1, 2, 10} {
		t.Run(fmt.Sprint(hanging), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNamed(100)
				for i := range hanging {
					name := fmt.Sprint("hangs", i)
					n.hanging[name] = true
					n.add(300, name, "")
				}
				n.start(t)
				for i := range hanging {
					begun, _ := n.counts()
					if got := begun[fmt.Sprint("hangs", i)]; got > 80 || got == 0 {
						t.Errorf("%d slots of 100 hang", got)
					}
				}
				n.add(50, "healthy", "")
				for range 5 {
					n.start(t)
				}
				begun, _ := n.counts()
				equal(t, "healthy work that ran", begun["healthy"], 50)
				close(n.hangs)
				synctest.Wait()
				_, err := n.worker.Process(context.Background())
				noError(t, err)
				equal(t, "runs", n.ran, 300*hanging+50)
			})
		})
	}
}

// Quick work of one name gets slots within the time for which it is held, so nothing is
// returned.
func TestQuickWorkOfOneNameIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNamed(10)
		n.add(1000, "quick", "")
		ran, err := n.worker.Process(context.Background())
		noError(t, err)
		equal(t, "runs", ran, 1000)
		equal(t, "returned", n.returned, 0)
	})
}

func TestReturnedWorkIsNotCountedAsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNamed(10)
		n.hanging["slow"] = true
		n.add(30, "slow", "")
		wait := process(t, n.worker)
		time.Sleep(time.Second)
		begun, returned := n.counts()
		equal(t, "begun", begun["slow"], 8)
		if returned == 0 {
			t.Fatal("nothing was returned")
		}
		close(n.hangs)
		equal(t, "runs", wait(), 30)
	})
}

func TestASystemThatFailsHasFewerSlotsUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNamed(100)
		n.failing["a"] = true
		for range 20 {
			n.add(10, "a", "example.com")
			n.start(t)
		}
		n.hanging["a"] = true
		n.add(100, "a", "example.com")
		before, _ := n.counts()
		n.start(t)
		begun, _ := n.counts()
		equal(t, "slots of a system that has failed 200 times", begun["a"]-before["a"], 1)
		shares := n.worker.Shares()
		if !slices.ContainsFunc(shares, func(s core.Share) bool { return s.Name == "example.com" && s.Held && s.Failures >= 200 && s.Most == 1 }) {
			t.Fatalf("the shares are %+v", shares)
		}
		n.mu.Lock()
		n.failing["a"] = false
		n.mu.Unlock()
		close(n.hangs)
		synctest.Wait()
		_, err := n.worker.Process(context.Background())
		noError(t, err)
		equal(t, "shares of idle work that answers", len(n.worker.Shares()), 0)
	})
}

func TestHeldClaimsAreReturnedWhenTheWorkerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNamed(10)
		n.hanging["slow"] = true
		n.add(10, "slow", "")
		_, err := n.worker.Start(context.Background())
		noError(t, err)
		synctest.Wait()
		close(n.hangs)
		noError(t, n.worker.Drain(context.Background()))
		n.mu.Lock()
		defer n.mu.Unlock()
		equal(t, "returned or run", n.ran+len(n.due), 10)
		equal(t, "running", n.worker.Stats().Running, 0)
	})
}
