package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch"
)

// wakeHost keeps an alarm that the test fires.
type wakeHost struct {
	mu      sync.Mutex
	at      time.Time
	sets    int
	deletes int
	fail    func(ctx context.Context, call string) error // may panic or block
}

func (h *wakeHost) called(ctx context.Context, call string) error {
	h.mu.Lock()
	fail := h.fail
	h.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx, call)
}

func (h *wakeHost) Set(ctx context.Context, at time.Time) error {
	if err := h.called(ctx, "set"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
	h.sets++
	return nil
}

func (h *wakeHost) Get(ctx context.Context) (time.Time, error) {
	if err := h.called(ctx, "get"); err != nil {
		return time.Time{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, nil
}

func (h *wakeHost) Delete(ctx context.Context) error {
	if err := h.called(ctx, "delete"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = time.Time{}
	h.deletes++
	return nil
}

func (h *wakeHost) alarm() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *wakeHost) put(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
}

func (h *wakeHost) failWith(fail func(ctx context.Context, call string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = fail
}

func startAlarm(t *testing.T, p dispatch.Processor, o dispatch.WakerOptions) *dispatch.Waker {
	t.Helper()
	if o.OnError == nil {
		o.OnError = func(err error) { t.Errorf("alarm: %v", err) }
	}
	d, err := dispatch.NewWaker(p, &o)
	noError(t, err)
	d.Start()
	t.Cleanup(func() { noError(t, d.Stop(context.Background())) })
	return d
}

func TestCase37TheAlarmIsSetAtTheStart(t *testing.T) {
	for name, c := range map[string]struct{ next, existing, want time.Duration }{
		"future":            {next: time.Minute, want: time.Minute},
		"past is now":       {next: -time.Minute, want: 0},
		"never postponed":   {next: time.Hour, existing: time.Minute, want: time.Minute},
		"advanced":          {next: time.Minute, existing: time.Hour, want: time.Minute},
		"equal stays":       {next: time.Minute, existing: time.Minute, want: time.Minute},
		"foreign is kept":   {next: never, existing: time.Minute, want: time.Minute},
		"none":              {next: never, want: never},
		"foreign past stay": {next: time.Minute, existing: -time.Minute, want: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				h := &wakeHost{}
				if c.existing != 0 {
					h.put(now.Add(c.existing))
				}
				p := &fake{next: at(after(now, c.next))}
				d := startAlarm(t, p, dispatch.WakerOptions{Host: h})
				d.Start() // changes nothing
				synctest.Wait()
				equal(t, "alarm", h.alarm(), after(now, c.want))
				equal(t, "deletes", h.deletes, 0)
				runs, asked := p.counts()
				equal(t, "runs before the alarm", runs, 0)
				equal(t, "questions", asked, 1)
			})
		})
	}
}

const never = time.Duration(1<<63 - 1)

func after(now time.Time, d time.Duration) time.Time {
	if d == never {
		return time.Time{}
	}
	return now.Add(d)
}

func TestCase37AnAlarmOfOurOwnIsClearedAndAForeignOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &wakeHost{}
		next := time.Now().Add(time.Hour)
		p := &fake{next: func(context.Context) (time.Time, error) { return next, nil }}
		d := startAlarm(t, p, dispatch.WakerOptions{Host: h})
		synctest.Wait()
		next = time.Time{} // somebody else has done it
		<-d.Wake()
		equal(t, "alarm", h.alarm(), time.Time{})
		equal(t, "deletes", h.deletes, 1)

		foreign := time.Now().Add(2 * time.Hour)
		h.put(foreign)
		<-d.Wake()
		equal(t, "foreign alarm", h.alarm(), foreign)
		equal(t, "deletes", h.deletes, 1)
	})
}

func TestTheHostFiresTheAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &wakeHost{}
		next := time.Now().Add(time.Hour)
		p := &fake{next: func(context.Context) (time.Time, error) { return next, nil }}
		d := startAlarm(t, p, dispatch.WakerOptions{Host: h})
		synctest.Wait()
		pass(time.Hour)
		h.put(time.Time{}) // it goes off
		next = time.Now().Add(time.Minute)
		<-d.Fire()
		equal(t, "runs", p.ran(), 1)
		equal(t, "next alarm", h.alarm(), next)

		noError(t, d.Stop(context.Background()))
		equal(t, "alarm for the next process", h.alarm(), next)
		<-d.Fire()
		equal(t, "runs after the stop", p.ran(), 1)
	})
}

// Work that arrives while the processor says that there is none must not lose
// its alarm to that answer.
func TestWorkThatArrivesBesideTheQuestionKeepsItsAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &wakeHost{}
		p := &fake{}
		next := time.Now().Add(2 * time.Hour)
		p.next = func(context.Context) (time.Time, error) { return next, nil }
		d := startAlarm(t, p, dispatch.WakerOptions{Host: h})
		synctest.Wait()
		due := time.Now().Add(time.Hour)
		p.become(nil, func(context.Context) (time.Time, error) {
			p.arrive(due)          // committed after the answer was read
			pass(time.Millisecond) // the alarm is set meanwhile
			return time.Time{}, nil
		})
		<-d.Wake()
		synctest.Wait()
		equal(t, "alarm", h.alarm(), due)
	})
}

func TestWorkThatArrivesSetsTheAlarmWithoutAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &wakeHost{}
		p := &fake{}
		startAlarm(t, p, dispatch.WakerOptions{Host: h})
		synctest.Wait()
		now := time.Now()
		p.arrive(now.Add(time.Hour))
		p.arrive(now.Add(time.Minute))
		p.arrive(now.Add(2 * time.Hour))
		synctest.Wait()
		equal(t, "alarm", h.alarm(), now.Add(time.Minute))
		runs, asked := p.counts()
		equal(t, "runs", runs, 0)
		equal(t, "questions", asked, 1)
		p.arrive(time.Time{})
		synctest.Wait()
		equal(t, "runs", p.ran(), 1)
	})
}

func TestCase38AnAlarmThatCannotBeSetIsReportedAndSetLater(t *testing.T) {
	for call, arrive := range map[string]bool{"set": false, "get": false, "delete": false, "set of what arrives": true, "get of what arrives": true} {
		for how, failure := range map[string]func() error{"error": func() error { return errBoom }, "panic": func() error { panic(errBoom) }} {
			t.Run(call+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c complaints
					h := &wakeHost{}
					due := time.Now().Add(time.Hour)
					next := due
					if arrive {
						next = time.Time{}
					}
					p := &fake{next: func(context.Context) (time.Time, error) { return next, nil }}
					if call == "delete" || arrive {
						startAlarm(t, p, dispatch.WakerOptions{Host: h, OnError: c.add})
						synctest.Wait()
					}
					h.failWith(func(_ context.Context, got string) error {
						if got == call[:len(got)] {
							return failure()
						}
						return nil
					})
					switch {
					case call == "delete":
						next = time.Time{}
						due = next
						p.arrive(time.Time{})
					case arrive:
						next = due
						p.arrive(due)
					default:
						startAlarm(t, p, dispatch.WakerOptions{Host: h, OnError: c.add})
					}
					pass(10500 * time.Millisecond)
					if n := c.about("boom"); n < 5 || n > 12 {
						t.Fatalf("there were %d complaints in 10 s", n)
					}
					h.failWith(nil)
					pass(2 * time.Second)
					synctest.Wait()
					equal(t, "alarm", h.alarm(), due)
				})
			})
		}
	}
}
